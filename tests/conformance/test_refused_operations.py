"""OP: operations that a stream has not, and operators that nobody asked for by name."""

from __future__ import annotations

from datetime import datetime

import pytest

from drawdown.errors import DrawdownError, SpecError, TransformError
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events:
    {{format: json, path: landing/events, schema: event.ddl, watermark: {{column: at, delay: 10 minutes}}}}
transform: transform.{suffix}
sink: {{format: parquet, path: tables/out}}
state: {{partitions: 2}}
"""
EVENT = "at TIMESTAMP, k STRING, v BIGINT"
STATIC = "  known: {format: json, path: reference/known, schema: event.ddl, static: true}\ntransform"

ACTIONS = {
    "count()": "groupBy().count()",
    "show()": "console",
    "collect()": "return the frame",
    "toPandas()": "return the frame",
    "take(1)": "return the frame",
    "head()": "return the frame",
    "foreach(print)": "format: foreach",
    "write.format('parquet').save('/tmp/never')": "`sink:` decides where",
    "cache()": "remove it",
    "rdd.count()": "functions of DataFrames",
}

# What SQL says: id of the refusal, what is named, what to write instead.
OPERATIONS = {
    "SELECT k FROM events ORDER BY k": ("mode.sort", "sorting", "remove ORDER BY"),
    "SELECT k FROM events LIMIT 3 OFFSET 2": ("transform.needs-the-whole-stream", "OFFSET", "filter by"),
    "SELECT k FROM events TABLESAMPLE (10 PERCENT)": (
        "transform.needs-the-whole-stream",
        "sampling",
        "hash of a key",
    ),
    "SELECT k, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM events": (
        "transform.needs-the-whole-stream",
        "window function",
        "transformWithState",
    ),
    "SELECT k FROM events INTERSECT SELECT k FROM events": (
        "transform.needs-the-whole-stream",
        "INTERSECT",
        "inner join",
    ),
    "SELECT k FROM events EXCEPT SELECT k FROM events WHERE v > 1": (
        "transform.needs-the-whole-stream",
        "EXCEPT",
        "left outer join",
    ),
    "SELECT k FROM events UNION ALL SELECT k FROM known": (
        "transform.union-with-static",
        "static",
        "static: true",
    ),
    "SELECT window.start, count(DISTINCT k) AS n FROM events GROUP BY window(at, '1 hour')": (
        "transform.distinct-aggregate",
        "distinct aggregations",
        "approx_count_distinct",
    ),
    "SELECT k FROM events WHERE v = (SELECT max(v) FROM events)": (
        "transform.refused",
        "Streaming query is not allowed in subquery",
        "fix the transform",
    ),
    "SELECT DISTINCT k FROM events": (
        "mode.append-needs-watermark",
        "DISTINCT without watermark",
        "dropDuplicates",
    ),
}


def _events(sandbox: Sandbox, name: str) -> None:
    sandbox.land_json(f"landing/events/{name}.json", [{"at": "2024-01-01T10:00:00Z", "k": "a", "v": 1}])


@pytest.mark.full
@pytest.mark.conformance("OP-09")
def test_plan_shows_the_stateful_operators_that_sql_brings_in(sandbox: Sandbox) -> None:
    spec = SPEC.format(suffix="sql")
    sandbox.pipeline("sql", spec, event_ddl=EVENT, transform_sql="SELECT DISTINCT at, k FROM events LIMIT 2")
    for run, keys in enumerate((["a", "a"], ["a", "b"], ["c"])):
        rows = [{"at": f"2024-01-01T1{run}:00:00Z", "k": k, "v": 1} for k in keys]
        sandbox.land_json(f"landing/events/{run}.json", rows)
        plan = planned(sandbox, "sql")
        assert plan.query is not None
        assert [(o.name, o.written, o.keeps) for o in plan.query.operators] == [
            ("GlobalLimit", "LIMIT", "the first 2 rows ever"),
            ("Distinct", "DISTINCT", "distinct events.at timestamp, events.k string"),
        ]
        warned = {v.id: v.what for v in plan.verdicts if v.level == "warning"}
        assert "no run writes any" in warned["transform.limit-is-for-ever"]
        sandbox.run("sql")
    assert sandbox.spark is not None
    written = sandbox.spark.read.parquet(str(sandbox.storage / "tables/out"))
    rows = sorted(tuple(row) for row in written.collect())
    assert len(rows) == 2, "LIMIT counts over all runs"
    assert rows[0] == (datetime(2024, 1, 1, 10), "a"), "DISTINCT knew the first run's rows in the second"


@pytest.mark.sampled
@pytest.mark.conformance("OP-10")
@pytest.mark.parametrize("action", list(ACTIONS))
def test_an_action_on_a_stream_is_refused_with_what_to_write_instead(sandbox: Sandbox, action: str) -> None:
    transform = f"def transform(sources):\n    sources['events'].{action}\n    return sources['events']\n"
    spec = SPEC.format(suffix="py")
    sandbox.pipeline("acts", spec, event_ddl=EVENT, transform_py=transform)
    _events(sandbox, "1")
    error = refused(sandbox, "acts", "transform.action", TransformError)
    called = action.split("(")[0].split(".")[0]
    assert f"calls {called}() on a stream" in error.what
    assert ACTIONS[action] in error.do
    assert error.where.endswith("transform.py:2")


@pytest.mark.conformance("OP-10")
def test_a_query_that_a_transform_starts_itself_is_stopped_and_refused(sandbox: Sandbox) -> None:
    transform = """
        def transform(sources):
            sources["events"].writeStream.format("noop").start()
            return sources["events"]
    """
    spec = SPEC.format(suffix="py")
    sandbox.pipeline("starts", spec, event_ddl=EVENT, transform_py=transform)
    _events(sandbox, "1")
    error = refused(sandbox, "starts", "transform.action", TransformError)
    assert "writeStream.start()" in error.what
    assert "second pipeline" in error.do


@pytest.mark.sampled
@pytest.mark.conformance("OP-11")
@pytest.mark.parametrize("sql", list(OPERATIONS))
def test_an_operation_that_a_stream_has_not_is_refused_with_the_nearest_that_works(
    sandbox: Sandbox, sql: str
) -> None:
    spec = SPEC.format(suffix="sql")
    if "known" in sql:
        spec = spec.replace("transform", STATIC, 1)
        sandbox.land_json("reference/known/1.json", [{"k": "a"}])
    sandbox.pipeline("asks", spec, event_ddl=EVENT, transform_sql=sql)
    _events(sandbox, "1")
    error_id, named, instead = OPERATIONS[sql]
    error = refused(sandbox, "asks", error_id, TransformError)
    assert named in error.what
    assert instead in error.do


@pytest.mark.parametrize(
    ("result", "error_id", "kind"),
    [
        ("'events'", "transform.no-frame", TransformError),
        ("sources['known']", "transform.not-streaming", TransformError),
        ("sources['more']", "transform.unused-source", SpecError),
    ],
)
def test_a_transform_gives_back_a_stream_of_all_its_sources(
    sandbox: Sandbox, result: str, error_id: str, kind: type[DrawdownError]
) -> None:
    more = "  more: {format: json, path: landing/more, schema: event.ddl}\n"
    spec = SPEC.format(suffix="py").replace("transform", more + STATIC, 1)
    transform = f"def transform(sources):\n    return {result}\n"
    sandbox.pipeline("gives", spec, event_ddl=EVENT, transform_py=transform)
    _events(sandbox, "1")
    for path in ("landing/more", "reference/known"):
        sandbox.land_json(f"{path}/1.json", [])
    error = refused(sandbox, "gives", error_id, kind)
    assert "gives" in error.what
