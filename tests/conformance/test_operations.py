"""OP: operations of a transform, and the same transform over bounded data."""

from __future__ import annotations

import pytest

from drawdown.query.bounded import bounded_output
from drawdown.spark.session import query_session
from tests.support.sandbox import Sandbox, sorted_rows
from tests.support.verdicts import verdicts

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddl}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
state: {partitions: 2}
"""
PYTHON = SPEC.replace("transform.sql", "transform.py")
EVENT = "k STRING, n BIGINT"
FIRST = [{"k": "a", "n": 1}, {"k": "b", "n": 2}, {"k": "a", "n": 3}]
SECOND = [{"k": "b", "n": 4}, {"k": "c", "n": 5}, {"k": "c", "n": 6}]


def _two_runs(sandbox: Sandbox, name: str) -> None:
    """Two runs with new rows in between."""
    sandbox.land_json("landing/events/1.json", FIRST)
    sandbox.run(name)
    sandbox.land_json("landing/events/2.json", SECOND)
    sandbox.run(name)


@pytest.mark.full
@pytest.mark.conformance("OP-01")
def test_projection_filter_and_map_in_sql(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "tenfold",
        SPEC,
        event_ddl=EVENT,
        out_ddl="key STRING, tens BIGINT",
        transform_sql="SELECT upper(k) AS key, n * 10 AS tens FROM events WHERE n % 2 = 1",
    )
    _two_runs(sandbox, "tenfold")
    assert sandbox.delta("tables/out") == [("A", 10), ("A", 30), ("C", 50)]


@pytest.mark.full
@pytest.mark.conformance("OP-02")
def test_projection_filter_and_map_in_python(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "tenfold",
        PYTHON,
        event_ddl=EVENT,
        out_ddl="key STRING, tens BIGINT",
        transform_py="""
            from pyspark.sql import functions as F

            def transform(sources):
                odd = sources["events"].where(F.col("n") % 2 == 1)
                return odd.select(F.upper("k").alias("key"), (F.col("n") * 10).alias("tens"))
        """,
    )
    _two_runs(sandbox, "tenfold")
    assert sandbox.delta("tables/out") == [("A", 10), ("A", 30), ("C", 50)]


@pytest.mark.full
@pytest.mark.conformance("OP-03")
def test_sql_over_temporary_views_of_the_sources(sandbox: Sandbox) -> None:
    """The views have the sources' names; a common table expression and a join work as on tables."""
    sandbox.land("reference/names/names.csv", ["a,Anna", "b,Bert"])
    sandbox.pipeline(
        "named",
        SPEC.replace(
            "sources:",
            "sources:\n  names: {format: csv, path: reference/names, schema: names.ddl, static: true}",
        ),
        event_ddl=EVENT,
        names_ddl="k STRING, name STRING",
        out_ddl="name STRING, n BIGINT",
        transform_sql="""
            WITH big AS (SELECT * FROM events WHERE n > 1)
            SELECT names.name, big.n FROM big JOIN names ON big.k = names.k
            UNION ALL SELECT 'not named', n FROM big WHERE k NOT IN ('a', 'b')
        """,
    )
    _two_runs(sandbox, "named")
    assert sandbox.delta("tables/out") == [
        ("Anna", 3),
        ("Bert", 2),
        ("Bert", 4),
        ("not named", 5),
        ("not named", 6),
    ]


UDFS = {
    "pandas": """
        import pandas as pd
        from pyspark.sql.functions import pandas_udf

        @pandas_udf("bigint")
        def tenfold(n: pd.Series) -> pd.Series:
            return n * 10
    """,
    "arrow": """
        import pyarrow as pa
        import pyarrow.compute
        from pyspark.sql.functions import arrow_udf

        @arrow_udf("bigint")
        def tenfold(n: pa.Array) -> pa.Array:
            return pa.compute.multiply(n, 10)
    """,
    "arrow-optimised": """
        from pyspark.sql.functions import udf

        @udf("bigint", useArrow=True)
        def tenfold(n):
            return n * 10
    """,
}
_USE = """
        def transform(sources):
            return sources["events"].select("k", tenfold("n").alias("tens"))
"""


@pytest.mark.full
@pytest.mark.conformance("OP-04")
@pytest.mark.parametrize("kind", UDFS)
def test_vectorised_functions_of_the_user(sandbox: Sandbox, kind: str) -> None:
    sandbox.pipeline(
        "tenfold",
        PYTHON,
        event_ddl=EVENT,
        out_ddl="k STRING, tens BIGINT",
        transform_py=UDFS[kind] + _USE,
    )
    _two_runs(sandbox, "tenfold")
    assert sandbox.delta("tables/out") == sorted_rows([(r["k"], r["n"] * 10) for r in FIRST + SECOND])


@pytest.mark.full
@pytest.mark.conformance("OP-05")
@pytest.mark.parametrize("mode", ["mode: update, keys: [k]", "mode: complete"])
def test_running_aggregation_by_key(sandbox: Sandbox, mode: str) -> None:
    sandbox.pipeline(
        "totals",
        SPEC.replace("schema: out.ddl", f"schema: out.ddl, {mode}"),
        event_ddl=EVENT,
        out_ddl="k STRING, rows BIGINT, total BIGINT, greatest BIGINT",
        transform_sql=(
            "SELECT k, count(*) AS rows, sum(n) AS total, max(n) AS greatest FROM events GROUP BY k"
        ),
    )
    sandbox.land_json("landing/events/1.json", FIRST)
    sandbox.run("totals")
    assert sandbox.delta("tables/out") == [("a", 2, 4, 3), ("b", 1, 2, 2)]
    sandbox.land_json("landing/events/2.json", SECOND)
    sandbox.run("totals")
    assert sandbox.delta("tables/out") == [("a", 2, 4, 3), ("b", 2, 6, 4), ("c", 2, 11, 6)]


@pytest.mark.full
@pytest.mark.conformance("OP-06")
def test_the_whole_stream_is_counted_over_all_runs(sandbox: Sandbox) -> None:
    sandbox.pipeline(
        "counted",
        PYTHON.replace("schema: out.ddl", "schema: out.ddl, mode: complete"),
        event_ddl=EVENT,
        out_ddl="count BIGINT",
        transform_py="""
            def transform(sources):
                return sources["events"].groupBy().count()
        """,
    )
    _two_runs(sandbox, "counted")
    assert sandbox.delta("tables/out") == [(len(FIRST + SECOND),)]


@pytest.mark.full
@pytest.mark.conformance("OP-08")
def test_union_of_two_streams_and_of_a_stream_with_itself(sandbox: Sandbox) -> None:
    others = "  others: {format: json, path: landing/others, schema: event.ddl}\ntransform:"
    sandbox.pipeline(
        "both",
        SPEC.replace("transform:", others, 1),
        event_ddl=EVENT,
        out_ddl="origin STRING, k STRING, n BIGINT",
        transform_sql="""
            SELECT 'events' AS origin, k, n FROM events
            UNION ALL SELECT 'others', k, n FROM others
            UNION ALL SELECT 'again', k, n FROM events WHERE k = 'c'
        """,
    )
    sandbox.land_json("landing/others/1.json", [{"k": "z", "n": 0}])
    _two_runs(sandbox, "both")
    assert sandbox.delta("tables/out") == sorted_rows(
        [
            *(("events", r["k"], r["n"]) for r in FIRST + SECOND),
            *(("again", r["k"], r["n"]) for r in SECOND if r["k"] == "c"),
            ("others", "z", 0),
        ]
    )


WATERMARKED = SPEC.replace("event.ddl}", "event.ddl, watermark: {column: at, delay: 10 minutes}}")
BOUNDED = {
    "replay.batch": (
        WATERMARKED,
        "SELECT window.start AS hour, k, count(*) AS n FROM events GROUP BY window(at, '1 hour'), k",
        "",
    ),
    "replay.scratch-checkpoint": (
        WATERMARKED.replace("transform.sql", "transform.py"),
        "",
        """
        def transform(sources):
            once = sources["events"].dropDuplicatesWithinWatermark(["k"])
            return once.selectExpr("date_trunc('day', at) AS hour", "k", "1L AS n")
        """,
    ),
}
TIMED = [
    [("10:05", "a"), ("10:06", "a"), ("11:01", "b"), ("11:02", "b")],
    [("11:05", "b"), ("11:20", "c"), ("12:30", "d")],
]


@pytest.mark.full
@pytest.mark.conformance("OP-07")
@pytest.mark.parametrize("way", BOUNDED)
def test_a_drain_and_bounded_data_give_the_same_rows(sandbox: Sandbox, way: str) -> None:
    """Windows that the stream has not closed yet are the one thing that a batch query gives as well."""
    spec, sql, python = BOUNDED[way]
    pipeline = sandbox.pipeline(
        "both_ways",
        spec,
        event_ddl="at TIMESTAMP, k STRING",
        out_ddl="hour TIMESTAMP, k STRING, n BIGINT",
        transform_sql=sql,
        transform_py=python,
    )
    for number, wave in enumerate(TIMED):
        rows = [{"at": f"2024-01-01T{time}:00Z", "k": k} for time, k in wave]
        sandbox.land_json(f"landing/events/{number}.json", rows)
        sandbox.run("both_ways")
    drained = sandbox.delta("tables/out")
    assert len(drained) == 4 if way == "replay.scratch-checkpoint" else 3

    before = sandbox.everything()
    assert [id for id in verdicts(sandbox, "both_ways") if id.startswith("replay.")] == [way]
    session = query_session(sandbox.spark, pipeline)
    events = session.read.schema("at TIMESTAMP, k STRING").json(str(sandbox.storage / "landing/events"))
    with bounded_output(session, sandbox.project, pipeline, {"events": events}) as output:
        closed = output.where("hour < timestamp '2024-01-01 12:00:00'")
        assert sorted_rows([tuple(row) for row in closed.collect()]) == [
            (hour.replace(tzinfo=None), *rest) for hour, *rest in drained
        ]
    assert sandbox.everything() == before, "the scratch checkpoint is gone, the live one is as it was"
