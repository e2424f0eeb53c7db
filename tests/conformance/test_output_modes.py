"""MODE: which query may be written in which output mode, and what the refused ones may be instead."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from drawdown.errors import TransformError
from drawdown.metastore.records import Run
from tests.support.refusals import planned, refused
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  events:
    {{format: json, path: landing/events, schema: event.ddl, watermark: {{column: at, delay: 10 minutes}}}}
transform: transform.{suffix}
sink: {{format: delta, path: tables/out, schema: out.ddl, mode: {mode}{keys}}}
state: {{partitions: 2}}
"""
EVENT = "at TIMESTAMP, k STRING, v BIGINT"
WINDOWS = "SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')"
TEN, ELEVEN, TWELVE = (datetime(2024, 1, 1, hour) for hour in (10, 11, 12))

FUNCTIONS = {
    "applyInPandasWithState": """
        import pandas as pd

        def counted(key, frames, state):
            n = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
            state.update((n,))
            yield pd.DataFrame({{"k": [key[0]], "n": [n]}})

        def transform(sources):
            by_key, out = sources["events"].groupBy("k"), "k STRING, n BIGINT"
            return by_key.applyInPandasWithState(counted, out, "n BIGINT", "{mode}", "NoTimeout")
        """,
    "transformWithState": """
        from pyspark.sql import Row
        from pyspark.sql.streaming import StatefulProcessor

        class Counted(StatefulProcessor):
            def init(self, handle):
                self.n = handle.getValueState("n", "n BIGINT")

            def handleInputRows(self, key, rows, timers):
                n = (self.n.get()[0] if self.n.exists() else 0) + sum(1 for _ in rows)
                self.n.update((n,))
                yield Row(k=key[0], n=n)

            def close(self):
                pass

        def transform(sources):
            by_key = sources["events"].groupBy("k")
            counted = by_key.transformWithState(Counted(), "k STRING, n BIGINT", "{mode}", "none")
            return counted{behind}
        """,
}


def _pipeline(
    sandbox: Sandbox,
    transform: str,
    out: str,
    mode: str,
    keys: str = "",
    *,
    suffix: str = "sql",
    name: str = "modes",
    watermark: bool = True,
) -> None:
    keyed = f", keys: [{keys}]" if mode == "update" else ""
    spec = SPEC.format(mode=mode, keys=keyed, suffix=suffix)
    if not watermark:
        spec = spec.replace(", watermark: {column: at, delay: 10 minutes}", "")
    sandbox.pipeline(name, spec, event_ddl=EVENT, out_ddl=out, **{f"transform_{suffix}": transform})


def _land(sandbox: Sandbox, file: str, *times: str, k: str = "a") -> None:
    rows = [{"at": f"2024-01-01T{time}:00Z", "k": k, "v": i} for i, time in enumerate(times)]
    sandbox.land_json(f"landing/events/{file}.json", rows)


def _land_and_run(sandbox: Sandbox, file: str, *times: str, k: str = "a") -> Run:
    _land(sandbox, file, *times, k=k)
    return sandbox.run("modes")


def read(sandbox: Sandbox) -> list[tuple[Any, ...]]:
    """The sink's rows, with times without their zone, which is UTC."""
    rows = sandbox.delta("tables/out")
    return [tuple(c.replace(tzinfo=None) if isinstance(c, datetime) else c for c in row) for row in rows]


@pytest.mark.full
@pytest.mark.conformance("MODE-01")
@pytest.mark.parametrize(
    ("mode", "first", "second"),
    [
        ("append", [], [(TEN, 2), (ELEVEN, 2)]),
        ("update", [(TEN, 2), (ELEVEN, 1)], [(TEN, 2), (ELEVEN, 2), (TWELVE, 1)]),
        ("complete", [(TEN, 2), (ELEVEN, 1)], [(TEN, 2), (ELEVEN, 2), (TWELVE, 1)]),
    ],
)
def test_an_aggregation_under_a_watermark_runs_in_every_mode(
    sandbox: Sandbox, mode: str, first: list[Any], second: list[Any]
) -> None:
    _pipeline(sandbox, WINDOWS, "hour TIMESTAMP, n BIGINT", mode, "hour")
    _land_and_run(sandbox, "1", "10:05", "10:55", "11:01")
    assert read(sandbox) == first
    _land_and_run(sandbox, "2", "11:20", "12:40")
    assert read(sandbox) == second


@pytest.mark.sampled
@pytest.mark.conformance("MODE-02")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_an_aggregation_without_watermark_is_refused_in_append_only(sandbox: Sandbox, mode: str) -> None:
    sql = "SELECT k, sum(v) AS n FROM events GROUP BY k"
    _pipeline(sandbox, sql, "k STRING, n BIGINT", mode, "k", watermark=False)
    _land(sandbox, "1", "10:00", "10:01")
    if mode == "append":
        error = refused(sandbox, "modes", "mode.append-needs-watermark", TransformError)
        assert "not supported for an aggregation without watermark (grouped by events.k)" in error.what
        assert "no watermark says when a group is complete" in error.what
        assert "mode: update" in error.do
        return
    sandbox.run("modes")
    _land(sandbox, "2", "10:02", "10:03", k="b")
    _land_and_run(sandbox, "3", "09:00", "09:00", "09:00")
    assert read(sandbox) == [("a", 4), ("b", 1)]


@pytest.mark.sampled
@pytest.mark.conformance("MODE-03")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_query_without_aggregation_is_refused_in_complete_only(sandbox: Sandbox, mode: str) -> None:
    _pipeline(sandbox, "SELECT k, v + 1 AS v FROM events", "k STRING, v BIGINT", mode, "k")
    _land(sandbox, "1", "10:00")
    if mode == "complete":
        error = refused(sandbox, "modes", "mode.complete-needs-aggregation", TransformError)
        assert "not supported for a query without an aggregation" in error.what
        assert "mode: append" in error.do
        return
    sandbox.run("modes")
    _land(sandbox, "2", "10:00")
    _land_and_run(sandbox, "3", "10:00", k="b")
    assert read(sandbox) == ([("a", 1), ("b", 1)] if mode == "update" else [("a", 1), ("a", 1), ("b", 1)])


@pytest.mark.sampled
@pytest.mark.conformance("MODE-04")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_join_of_two_streams_runs_in_append_only(sandbox: Sandbox, mode: str) -> None:
    keys = ", keys: [k]" if mode == "update" else ""
    spec = SPEC.format(mode=mode, keys=keys, suffix="sql").replace(
        "transform:",
        "  names: {format: json, path: landing/names, schema: name.ddl,"
        " watermark: {column: named_at, delay: 10 minutes}}\ntransform:",
        1,
    )
    sql = """SELECT events.k, name FROM events JOIN names
             ON events.k = names.k AND at BETWEEN named_at AND named_at + INTERVAL 1 HOUR"""
    name_ddl = "named_at TIMESTAMP, k STRING, name STRING"
    files = {"event_ddl": EVENT, "name_ddl": name_ddl, "out_ddl": "k STRING, name STRING"}
    sandbox.pipeline("modes", spec, transform_sql=sql, **files)
    sandbox.land_json("landing/names/1.json", [{"named_at": "2024-01-01T10:00:00Z", "k": "a", "name": "A"}])
    _land(sandbox, "1", "10:30")
    if mode != "append":
        error = refused(sandbox, "modes", "join.append-only", TransformError)
        assert f"in append mode only, not in {mode} mode" in error.what
        assert "mode: append" in error.do
        return
    sandbox.run("modes")
    _land_and_run(sandbox, "2", "10:50")
    assert read(sandbox) == [("a", "A"), ("a", "A")]


@pytest.mark.sampled
@pytest.mark.conformance("MODE-05")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_session_windows_are_refused_in_update_only(sandbox: Sandbox, mode: str) -> None:
    sql = """SELECT session_window.start AS began, k, count(*) AS n FROM events
             GROUP BY session_window(at, '30 minutes'), k"""
    _pipeline(sandbox, sql, "began TIMESTAMP, k STRING, n BIGINT", mode, "began, k")
    _land(sandbox, "1", "10:00", "10:20")
    if mode == "update":
        error = refused(sandbox, "modes", "window.session-update", TransformError)
        assert "session windows are not supported in update mode" in error.what
        assert "mode: append" in error.do
        return
    sandbox.run("modes")
    _land_and_run(sandbox, "2", "10:40", "12:00")
    open_session = [] if mode == "append" else [(TWELVE, "a", 1)]
    assert read(sandbox) == [(TEN, "a", 3), *open_session]


@pytest.mark.full
@pytest.mark.conformance("MODE-06")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_a_sort_runs_behind_an_aggregation_in_complete_only(sandbox: Sandbox, mode: str) -> None:
    sql = f"{WINDOWS} ORDER BY n DESC LIMIT 1" if mode == "complete" else f"{WINDOWS} ORDER BY n DESC"
    _pipeline(sandbox, sql, "hour TIMESTAMP, n BIGINT", mode, "hour")
    _land(sandbox, "1", "10:00", "10:01", "11:00")
    if mode != "complete":
        error = refused(sandbox, "modes", "mode.sort", TransformError)
        assert "unless it sorts an aggregated result in complete mode" in error.what
        assert "mode: complete" in error.do
        return
    sandbox.run("modes")
    assert read(sandbox) == [(TEN, 2)]
    _land_and_run(sandbox, "2", "11:01", "11:02")
    assert read(sandbox) == [(ELEVEN, 3)], "the greatest now, by what both runs counted"
    _pipeline(sandbox, "SELECT k, v FROM events ORDER BY v", "k STRING, v BIGINT", mode, name="plain")
    plain = {verdict.id: verdict.level for verdict in planned(sandbox, "plain").verdicts}
    assert plain["mode.sort"] == "refused"


@pytest.mark.full
@pytest.mark.conformance("MODE-07")
@pytest.mark.parametrize("function", list(FUNCTIONS))
@pytest.mark.parametrize("mode", ["append", "update"])
def test_a_function_with_state_runs_in_the_mode_it_is_written_for(
    sandbox: Sandbox, function: str, mode: str
) -> None:
    other = "update" if mode == "append" else "append"
    wrong = FUNCTIONS[function].format(mode=other, behind="")
    _pipeline(sandbox, wrong, "k STRING, n BIGINT", mode, "k", suffix="py")
    _land(sandbox, "1", "10:00", "10:01")
    error = refused(sandbox, "modes", "mode.function", TransformError)
    assert f"{function} in {other} mode is not supported with {mode} output mode" in error.what
    assert f"mode: {other}" in error.do

    right = FUNCTIONS[function].format(mode=mode, behind="")
    _pipeline(sandbox, right, "k STRING, n BIGINT", mode, "k", suffix="py")
    sandbox.run("modes")
    _land_and_run(sandbox, "2", "10:02")
    assert read(sandbox) == ([("a", 3)] if mode == "update" else [("a", 2), ("a", 3)])


@pytest.mark.full
@pytest.mark.conformance("MODE-08")
@pytest.mark.parametrize("mode", ["append", "update"])
def test_several_functions_with_state_run_in_append_only(sandbox: Sandbox, mode: str) -> None:
    again = f""".groupBy("n").transformWithState(Counted(), "k STRING, n BIGINT", "{mode}", "none")"""
    transform = FUNCTIONS["transformWithState"].format(mode=mode, behind=again).replace("k=key", "k=str(key)")
    transform = transform.replace("str(key)[0]", "str(key[0])")
    _pipeline(sandbox, transform, "k STRING, n BIGINT", mode, "k", suffix="py")
    _land(sandbox, "1", "10:00", "10:01")
    if mode == "update":
        error = refused(sandbox, "modes", "mode.chain", TransformError)
        assert "chaining stateful operators is not supported in update mode" in error.what
        assert "mode: append" in error.do
        return
    sandbox.run("modes")
    _land_and_run(sandbox, "2", "10:02", "10:03", k="b")
    assert read(sandbox) == [("2", 1), ("2", 2)], "the count of 2 was seen in the first run, then again"


@pytest.mark.full
@pytest.mark.conformance("MODE-09")
@pytest.mark.parametrize("mode", ["append", "update", "complete"])
def test_chained_stateful_operators_run_in_append_only(sandbox: Sandbox, mode: str) -> None:
    sql = """
        SELECT window.start AS began, sum(n) AS n
        FROM (SELECT window AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour'))
        GROUP BY window(hour, '2 hours')
        """
    _pipeline(sandbox, sql, "began TIMESTAMP, n BIGINT", mode, "began")
    _land(sandbox, "1", "10:00", "10:30", "11:30")
    if mode != "append":
        error = refused(sandbox, "modes", "mode.chain", TransformError)
        assert f"chaining stateful operators is not supported in {mode} mode" in error.what
        assert "an aggregation after it would treat each of them as a new row" in error.what
        assert "second pipeline" in error.do
        return
    sandbox.run("modes")
    assert read(sandbox) == []
    _land_and_run(sandbox, "2", "11:40", "12:30", "14:30")
    assert read(sandbox) == [(TEN, 4), (TWELVE, 1)]


@pytest.mark.conformance("MODE-11")
@pytest.mark.parametrize(
    ("mode", "sql", "error_id"),
    [
        ("append", "SELECT k, count(*) AS n FROM events GROUP BY k", "watermark.other-column"),
        ("complete", "SELECT k, v AS n FROM events", "mode.complete-needs-aggregation"),
        ("update", "SELECT k, v AS n FROM events LIMIT 2", "state.limit-in-update"),
        (
            "append",
            "SELECT k, v n FROM events UNION SELECT k, v FROM events",
            "mode.append-needs-watermark",
        ),
    ],
)
def test_plan_says_every_refusal_before_there_is_a_checkpoint(
    sandbox: Sandbox, mode: str, sql: str, error_id: str
) -> None:
    _pipeline(sandbox, sql, "k STRING, n BIGINT", mode, "k")
    _land(sandbox, "1", "10:00")
    error = refused(sandbox, "modes", error_id, TransformError)
    assert error.do
    assert not (sandbox.storage / "_drawdown").exists()
    assert not (sandbox.storage / "tables").exists()
    with sandbox.metastore() as metastore:
        assert metastore.active_checkpoint("modes") is None
        assert [run.error and run.error["id"] for run in metastore.runs("modes")] == [error_id]
