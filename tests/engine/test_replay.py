"""A replay puts one closed interval, computed again from the sources, in place of the present rows."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame
from sqlalchemy import delete

from drawdown.drain.attempt import Attempt
from drawdown.drain.run_context import RunContext
from drawdown.errors import AuditFailed, DrawdownError, SourceError
from drawdown.held.decide import Decision, decide
from drawdown.metastore.records import Run
from drawdown.metastore.tables import batches
from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.replay import spark_replay as replays
from drawdown.replay.spark_replay import replay
from drawdown.spec import Pipeline, load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.replays import REPLAYED, replayed
from tests.support.sandbox import Sandbox

HOURLY = """
SELECT window.start AS hour, k, sum(n) AS total
FROM events GROUP BY window(at, '1 hour'), k
"""
DAYS = [f"2024-01-{day:02}" for day in range(1, 5)]


def event(at: str, n: int = 1, k: str = "a") -> dict[str, object]:
    return {"at": f"{at}:00Z", "k": k, "n": n}


def hourly(sandbox: Sandbox, spec: str = REPLAYED, sql: str = HOURLY, quality: str = "rules: []") -> None:
    sandbox.pipeline(
        "hourly",
        spec,
        events_ddl="at TIMESTAMP, k STRING, n INT",
        hourly_ddl="hour TIMESTAMP, k STRING, total BIGINT",
        transform_sql=sql,
        quality_yaml=quality,
    )


def refusal(sandbox: Sandbox, start: str, end: str) -> DrawdownError:
    with pytest.raises(DrawdownError) as refused:
        replayed(sandbox, start, end)
    return refused.value


def land(sandbox: Sandbox, name: str, events: Iterable[dict[str, object]]) -> None:
    sandbox.land_json(f"landing/events/{name}", events)


def land_and_run(sandbox: Sandbox, name: str, events: Iterable[dict[str, object]]) -> Run:
    land(sandbox, name, events)
    return sandbox.run("hourly")


@pytest.fixture
def drained(sandbox: Sandbox) -> Sandbox:
    """Three days of one event each half day; the first day's late event was dropped."""
    hourly(sandbox)
    land(sandbox, "a[1].json", [event(f"{day} {hour}:30") for day in DAYS[:2] for hour in ("06", "18")])
    sandbox.run("hourly")
    land_and_run(sandbox, "b.json", [event("2024-01-01 06:45", 10), event("2024-01-03 06:30")])
    land_and_run(sandbox, "c.json", [event("2024-01-04 00:30")])
    assert totals(sandbox) == {"01 06": 1, "01 18": 1, "02 06": 1, "02 18": 1, "03 06": 1}
    return sandbox


def totals(sandbox: Sandbox) -> dict[str, int]:
    """By day and hour; a row that comes twice counts twice."""
    found: dict[str, int] = {}
    for hour, _, total in sandbox.delta("tables/hourly"):
        found[f"{hour:%d %H}"] = found.get(f"{hour:%d %H}", 0) + total
    return found


def test_partition_folders_give_a_replay_their_columns(sandbox: Sandbox) -> None:
    hourly(sandbox)
    for number, (folder, times) in enumerate(
        [("k=a", ["2024-01-01T06:30:00Z", "2024-01-03T00:30:00Z"]), ("k=b", ["2024-01-01T06:45:00Z"])]
    ):
        rows = [{"at": at, "n": 1} for at in times]
        sandbox.land_json(f"landing/events/{folder}/{number}.json", rows, mtime=number + 1)
        sandbox.run("hourly")
    assert [(k, total) for _, k, total in sandbox.delta("tables/hourly")] == [("a", 1)], "b came late"
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert [(k, total) for _, k, total in sandbox.delta("tables/hourly")] == [("a", 1), ("b", 1)]


def test_a_replayed_interval_has_what_came_late_and_the_rest_stays(drained: Sandbox) -> None:
    run = replayed(drained, "2024-01-01", "2024-01-02")
    assert totals(drained) == {"01 06": 11, "01 18": 1, "02 06": 1, "02 18": 1, "03 06": 1}
    assert (run.kind, run.state, run.verdict) == ("replay", "succeeded", "pass")
    assert (run.counts.read, run.counts.fed, run.counts.staged, run.counts.published) == (3, 3, 2, 2)
    assert run.origin["interval"] == ["2024-01-01T00:00:00+00:00", "2024-01-02T00:00:00+00:00"]
    before = drained.delta("tables/hourly")
    replayed(drained, "2024-01-01", "2024-01-02")
    assert drained.delta("tables/hourly") == before, "again, it changes nothing"
    assert not list(drained.storage.glob("_drawdown/hourly/replays/*")), "nothing of it is left"
    assert drained.drain("hourly")[0].run is None, "a drain finds nothing to do"
    land_and_run(drained, "d.json", [event("2024-01-05 00:30")])
    assert totals(drained)["04 00"] == 1


def test_rows_outside_of_the_interval_stay_though_their_file_is_written_again(drained: Sandbox) -> None:
    replayed(drained, "2024-01-01T06:00:00", "2024-01-01T07:00:00Z")
    assert totals(drained) == {"01 06": 11, "01 18": 1, "02 06": 1, "02 18": 1, "03 06": 1}


@pytest.mark.full
def test_what_no_longer_passes_replaces_nothing(drained: Sandbox) -> None:
    before = drained.delta("tables/hourly")
    hourly(
        drained,
        quality="expectations:\n"
        "  - {type: expect_column_max_to_be_between, kwargs: {column: total, max_value: 10}}\n",
    )
    with pytest.raises(AuditFailed, match="replaced nothing"):
        replayed(drained, "2024-01-01", "2024-01-02")
    assert drained.delta("tables/hourly") == before
    with drained.metastore() as metastore:
        run = metastore.runs("hourly")[0]
    assert (run.kind, run.state, run.verdict) == ("replay", "failed", "fail")


def test_an_interval_that_the_live_query_has_not_finished_is_refused(drained: Sandbox) -> None:
    error = refusal(drained, "2024-01-03", "2024-01-05")
    assert error.id == "replay.open"
    assert "is at 2024-01-04 00:30:00 UTC" in error.what


def test_what_a_drain_publishes_meanwhile_is_not_lost(sandbox: Sandbox) -> None:
    """Late rows of a query without state come with any later batch: the replay begins again."""
    hourly(sandbox, sql="SELECT date_trunc('hour', at) AS hour, k, CAST(n AS BIGINT) AS total FROM events")
    land_and_run(sandbox, "a.json", [event("2024-01-01 06:30"), event("2024-01-03 06:30")])
    land(sandbox, "b.json", [event("2024-01-01 06:45", 10), event("2024-01-03 07:30")])
    said: list[str] = []

    def drain_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
        if not said:
            sandbox.run("hourly")
        return GxAuditor()(rows, pipeline, count)

    assert sandbox.spark is not None
    interval = Interval.parse("2024-01-01", "2024-01-02")
    with sandbox.metastore() as metastore:
        pipeline = load_pipeline(sandbox.project, "hourly")
        workspace = Workspace(sandbox.project, metastore)
        context = RunContext("r1", "test", on_notice=said.append)
        run = replay(Attempt(sandbox.spark, workspace, pipeline, drain_then_audit, context), interval)
    assert said == [f"a batch added rows of {interval} in the meantime: starting again"]
    assert run.counts.published == 2
    assert totals(sandbox) == {"01 06": 11, "03 06": 1, "03 07": 1}


def test_a_replay_that_every_drain_overtakes_gives_up_and_replaces_nothing(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "_ATTEMPTS", 1)
    hourly(sandbox, sql="SELECT date_trunc('hour', at) AS hour, k, CAST(n AS BIGINT) AS total FROM events")
    land_and_run(sandbox, "0.json", [event("2024-01-01 06:30"), event("2024-01-03 06:30")])

    def drain_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
        land_and_run(sandbox, "1.json", [event("2024-01-01 07:30"), event("2024-01-03 07:00")])
        return GxAuditor()(rows, pipeline, count)

    assert sandbox.spark is not None
    interval = Interval.parse("2024-01-01", "2024-01-02")
    with sandbox.metastore() as metastore:
        pipeline = load_pipeline(sandbox.project, "hourly")
        workspace = Workspace(sandbox.project, metastore)
        with pytest.raises(SourceError, match="during 1 attempts") as caught:
            replay(
                Attempt(sandbox.spark, workspace, pipeline, drain_then_audit, RunContext("r1", "test")),
                interval,
            )
        assert caught.value.id == "replay.overtaken"
        assert [run.state for run in metastore.runs("hourly") if run.run_id == "r1"] == ["failed"]
    assert totals(sandbox)["01 07"] == 1, "what the drain brought"
    assert not list(sandbox.storage.glob("_drawdown/hourly/replays/*"))


def test_an_interval_whose_files_are_gone_is_refused_and_later_ones_are_not(drained: Sandbox) -> None:
    (drained.storage / "landing/events/a[1].json").unlink()
    error = refusal(drained, "2024-01-01", "2024-01-02")
    assert error.id == "replay.files-gone"
    assert "what starts after 2024-01-02T18:30:00Z can be" in error.what
    replayed(drained, "2024-01-03", "2024-01-04")
    assert totals(drained)["03 06"] == 1


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (HOURLY.replace("'1 hour'", "'1 day', '1 hour'"), "depends on rows further away"),
        (
            "SELECT session_window.start AS hour, k, sum(n) AS total"
            " FROM events GROUP BY session_window(at, '1 hour'), k",
            "the plan does not show how far hour can be",
        ),
        (
            "SELECT date_trunc('hour', at) AS hour, k, CAST(n AS BIGINT) AS total FROM events LIMIT 5",
            "forever",
        ),
    ],
)
def test_state_that_reaches_further_than_what_is_read_is_refused(
    sandbox: Sandbox, sql: str, said: str
) -> None:
    hourly(sandbox, sql=sql)
    for file in ("a.json", "b.json"):
        land_and_run(sandbox, file, [event("2024-01-01 06:30"), event("2024-01-06 06:30")])
    error = refusal(sandbox, "2024-01-01", "2024-01-02")
    assert error.id == "replay.reach"
    assert said in error.what


def test_what_was_never_drained_or_says_no_replay_is_refused(sandbox: Sandbox) -> None:
    hourly(sandbox)
    assert refusal(sandbox, "2024-01-01", "2024-01-02").id == "replay.nothing-visible"
    hourly(sandbox, REPLAYED.replace("replay: {interval: 1 day}", ""))
    assert refusal(sandbox, "2024-01-01", "2024-01-02").id == "replay.undeclared"


def test_in_update_mode_keys_are_merged_and_those_that_vanished_are_removed(sandbox: Sandbox) -> None:
    hourly(sandbox, REPLAYED.replace("time_column: hour", "time_column: hour, mode: update, keys: [hour, k]"))
    land_and_run(sandbox, "a.json", [event("2024-01-01 06:30"), event("2024-01-01 07:30", k="gone")])
    land_and_run(sandbox, "b.json", [event("2024-01-03 00:30"), event("2024-01-01 08:30", k="late")])
    hourly(
        sandbox,
        REPLAYED.replace("time_column: hour", "time_column: hour, mode: update, keys: [hour, k]"),
        quality="rules: [{name: there, check: \"k <> 'gone'\", on_fail: quarantine}]",
    )
    land_and_run(sandbox, "c.json", [event("2024-01-03 01:30")])
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert totals(sandbox) == {"01 06": 1, "01 08": 1, "03 00": 1, "03 01": 1}


def test_a_held_slice_that_later_ones_have_overtaken_is_decided_about_first(sandbox: Sandbox) -> None:
    """Released behind a replay that had read its rows, it would bring them twice."""
    spec = REPLAYED.replace("time_column: hour", "time_column: hour, ordered: false")
    sql = "SELECT date_trunc('hour', at) AS hour, k, CAST(n AS BIGINT) AS total FROM events"
    at_most = "{type: expect_column_max_to_be_between, kwargs: {column: total, max_value: 10}}"
    hourly(sandbox, spec, sql, f"expectations: [{at_most}]")
    land_and_run(sandbox, "a.json", [event("2024-01-01 06:30"), event("2024-01-02 06:30")])
    land(sandbox, "b.json", [event("2024-01-01 07:30", 99)])
    with pytest.raises(AuditFailed):
        sandbox.run("hourly")
    land_and_run(sandbox, "c.json", [event("2024-01-04 06:30")])
    assert totals(sandbox) == {"01 06": 1, "02 06": 1, "04 06": 1}
    error = refusal(sandbox, "2024-01-01", "2024-01-02")
    assert error.id == "replay.waiting"
    assert "`drawdown release hourly --why ...`" in error.do
    replayed(sandbox, "2024-01-02", "2024-01-03")
    with sandbox.metastore() as metastore:
        pipeline = load_pipeline(sandbox.project, "hourly")
        decide(
            Workspace(sandbox.project, metastore),
            pipeline,
            Decision("release", "r1", "test", "ann", "it was so"),
        )
    hourly(sandbox, spec, sql)
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert totals(sandbox) == {"01 06": 1, "01 07": 99, "02 06": 1, "04 06": 1}


KEYED = REPLAYED.replace("time_column: hour", "time_column: hour, mode: update, keys: [hour, k]")
PLAIN = "SELECT date_trunc('hour', at) AS hour, k, CAST(n AS BIGINT) AS total FROM events"


@pytest.mark.full
def test_of_a_key_without_state_the_last_row_that_a_drain_was_given_stays(sandbox: Sandbox) -> None:
    """By the batches, as drains do it: neither the greater value nor the later event time."""
    hourly(sandbox, KEYED, PLAIN)
    land_and_run(sandbox, "a b+c.json", [event("2024-01-01 06:45", 5), event("2024-01-01 07:30", 1)])
    land_and_run(sandbox, "b.json", [event("2024-01-01 06:30", 3), event("2024-01-01 07:30", 2, k="b")])
    land_and_run(sandbox, "c.json", [event("2024-01-01 07:15", 0), event("2024-01-03 00:30")])
    before = sandbox.delta("tables/hourly")
    assert totals(sandbox) == {"01 06": 3, "01 07": 2, "03 00": 1}
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert sandbox.delta("tables/hourly") == before
    assert not list(sandbox.storage.glob("_drawdown/hourly/replays/*"))
    # Without its notes nobody knows which batch was the last.
    with sandbox.metastore() as metastore, metastore._engine.begin() as conn:
        conn.execute(delete(batches).where(batches.c.batch_id <= 1))
    assert refusal(sandbox, "2024-01-01", "2024-01-02").id == "sink.duplicate-keys"
    assert sandbox.delta("tables/hourly") == before


def test_keys_that_a_replay_gives_twice_are_refused(sandbox: Sandbox) -> None:
    """Two groups of one key came in batches of their own, and the replay has both at once."""
    hourly(sandbox, KEYED.replace("[hour, k]", "[hour]"))
    land_and_run(sandbox, "a.json", [event("2024-01-01 06:30")])
    land_and_run(sandbox, "b.json", [event("2024-01-01 06:45", k="b"), event("2024-01-03 00:30")])
    before = sandbox.delta("tables/hourly")
    error = refusal(sandbox, "2024-01-01", "2024-01-02")
    assert error.id == "sink.duplicate-keys"
    assert "the replay of 2024-01-01T00:00:00Z to 2024-01-02T00:00:00Z" in error.what
    assert sandbox.delta("tables/hourly") == before


@pytest.mark.full
def test_a_lowered_delay_does_not_make_older_files_dispensable(sandbox: Sandbox) -> None:
    delayed = REPLAYED.replace("delay: 0 seconds", "delay: 2 days")
    hourly(sandbox, delayed, PLAIN)
    land_and_run(sandbox, "a.json", [event("2024-01-03 06:30")])
    for file in ("b.json", "c.json"):
        land_and_run(sandbox, file, [event("2024-01-03 12:30")])
    hourly(sandbox, REPLAYED, PLAIN)
    for file in ("d.json", "e.json"):
        land_and_run(sandbox, file, [event("2024-01-06 00:30")])
    (sandbox.storage / "landing/events/a.json").unlink()
    before = sandbox.delta("tables/hourly")
    error = refusal(sandbox, "2024-01-03", "2024-01-04")
    assert error.id == "replay.files-gone"
    assert "what starts after 2024-01-03T06:30:00Z can be" in error.what
    assert sandbox.delta("tables/hourly") == before
    replayed(sandbox, "2024-01-04", "2024-01-05")
    assert sandbox.delta("tables/hourly") == before


def test_a_held_slice_without_event_times_is_in_no_interval(sandbox: Sandbox) -> None:
    spec = REPLAYED.replace("time_column: hour", "time_column: hour, ordered: false")
    at_most = "{type: expect_column_max_to_be_between, kwargs: {column: total, max_value: 10}}"
    hourly(sandbox, spec, PLAIN, f"expectations: [{at_most}]")
    land_and_run(sandbox, "a.json", [event("2024-01-01 06:30")])
    land(sandbox, "b.json", [{"k": "a", "n": 99}])
    with pytest.raises(AuditFailed):
        sandbox.run("hourly")
    land_and_run(sandbox, "c.json", [event("2024-01-04 06:30")])
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert totals(sandbox) == {"01 06": 1, "04 06": 1}


WITH_N = "SELECT date_trunc('hour', at) AS hour, k, 7 AS m, CAST(n AS BIGINT) AS total FROM events"


@pytest.mark.sampled
@pytest.mark.parametrize("spec", [REPLAYED, KEYED], ids=["append", "update"])
def test_a_column_in_the_middle_of_the_declared_schema_is_taken_by_its_name(
    sandbox: Sandbox, spec: str
) -> None:
    """By a publish, by the release of what waited since before the column, and by a replay."""
    at_most = "{type: expect_column_max_to_be_between, kwargs: {column: total, max_value: 10}}"
    hourly(sandbox, spec, PLAIN, f"expectations: [{at_most}]")
    land_and_run(sandbox, "a.json", [event("2024-01-01 06:30")])
    land(sandbox, "b.json", [event("2024-01-01 07:30", 99)])
    with pytest.raises(AuditFailed):
        sandbox.run("hourly")
    hourly(sandbox, spec, WITH_N)
    ddl = sandbox.root / "include/pipelines/hourly/hourly.ddl"
    ddl.write_text("hour TIMESTAMP, k STRING, m INT, total BIGINT")
    land_and_run(sandbox, "c.json", [event("2024-01-03 06:30", 2)])
    with sandbox.metastore() as metastore:
        pipeline = load_pipeline(sandbox.project, "hourly")
        decide(
            Workspace(sandbox.project, metastore),
            pipeline,
            Decision("release", "r1", "test", "ann", "it was so"),
        )

    def found() -> list[tuple[object, ...]]:
        rows = DeltaTable(str(sandbox.storage / "tables/hourly")).to_pyarrow_table().to_pylist()
        return sorted((f"{row['hour']:%d %H}", row["k"], row["m"], row["total"]) for row in rows)

    assert found() == [("01 06", "a", None, 1), ("01 07", "a", None, 99), ("03 06", "a", 7, 2)]
    replayed(sandbox, "2024-01-01", "2024-01-02")
    assert found() == [("01 06", "a", 7, 1), ("01 07", "a", 7, 99), ("03 06", "a", 7, 2)]
