"""A replay into PostgreSQL: one transaction puts the recomputed rows in place, in turn with drains."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC

import psycopg
import pytest
from pyspark.sql import DataFrame

from drawdown.changes.protocol import NewRows
from drawdown.drain.attempt import Attempt
from drawdown.drain.run_context import RunContext
from drawdown.errors import RefusedError
from drawdown.metastore.records import Run, StagedFile
from drawdown.quality.audit import GxAuditor
from drawdown.quality.outcome import AuditOutcome
from drawdown.replay.spark_replay import replay
from drawdown.sinks.targets import replaceable_of
from drawdown.spec import Pipeline, load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.database import TestDatabase
from tests.support.registered import change
from tests.support.replays import REPLAYED, replayed
from tests.support.sandbox import Sandbox

FIRST_DAY = "2024-01-01", "2024-01-02"
INTO_POSTGRES = REPLAYED.replace("format: delta, path: tables/hourly", "format: postgres, table: public.out")
UPDATE = INTO_POSTGRES.replace("time_column: hour", "time_column: hour, mode: update, keys: [hour, k]")
HOURLY = "SELECT window.start AS hour, k, count(*) AS n FROM events GROUP BY window(at, '1 hour'), k"
PLAIN = "SELECT date_trunc('hour', at) AS hour, k, 1L AS n FROM events"


@pytest.fixture
def sandbox(postgres_sandbox: Sandbox) -> Sandbox:
    return postgres_sandbox


def hourly(sandbox: Sandbox, spec: str, sql: str, rules: str = "", out: str = "hour TIMESTAMP") -> None:
    sandbox.pipeline(
        "hourly",
        spec,
        events_ddl="at TIMESTAMP, k STRING",
        hourly_ddl=f"{out}, k STRING, n BIGINT",
        transform_sql=sql,
        quality_yaml=f"rules: [{rules}]",
    )


def land(sandbox: Sandbox, file: str, *events: str) -> None:
    """Events such as `01T06 a`."""
    rows = [{"at": f"2024-01-{event[:5]}:30:00Z", "k": event[6:]} for event in events]
    sandbox.land_json(f"landing/events/{file}.json", rows)


def land_and_run(sandbox: Sandbox, file: str, *events: str) -> Run:
    land(sandbox, file, *events)
    return sandbox.run("hourly")


def totals(database: TestDatabase) -> dict[str, int]:
    """By day, hour and key; a row that comes twice counts twice."""
    found: dict[str, int] = {}
    for hour, k, n in database.execute("SELECT hour, k, n FROM public.out"):
        at = f"{hour.astimezone(UTC):%dT%H} {k}"
        found[at] = found.get(at, 0) + n
    return found


@pytest.mark.sampled
@pytest.mark.parametrize("spec", [INTO_POSTGRES, UPDATE], ids=["append", "update"])
def test_a_replayed_interval_has_what_came_late_and_lacks_what_no_longer_passes(
    sandbox: Sandbox, database: TestDatabase, spec: str
) -> None:
    hourly(sandbox, spec, HOURLY)
    land_and_run(sandbox, "1", "01T06 a", "01T23 gone", "02T00 gone", "02T06 a")
    land_and_run(sandbox, "2", "01T06 a", "01T07 late", "03T06 a")
    hourly(sandbox, spec, HOURLY, "{name: there, check: \"k <> 'gone'\", on_fail: quarantine}")
    land_and_run(sandbox, "3", "04T06 a")
    rest = {hour: n for hour, n in totals(database).items() if hour > "02"}
    run = replayed(sandbox, *FIRST_DAY)
    assert totals(database) == {"01T06 a": 2, "01T07 late": 1, **rest}
    assert run.counts.published == 2
    replayed(sandbox, *FIRST_DAY)
    assert totals(database) == {"01T06 a": 2, "01T07 late": 1, **rest}, "again, it changes nothing"
    land_and_run(sandbox, "4", "05T06 a")
    assert totals(database)["04T06 a"] == 1


def test_what_a_drain_publishes_meanwhile_is_not_lost(sandbox: Sandbox, database: TestDatabase) -> None:
    hourly(sandbox, INTO_POSTGRES, PLAIN)
    land_and_run(sandbox, "1", "01T06 a", "03T06 a")
    land(sandbox, "2", "01T07 late", "03T07 a")
    said: list[str] = []

    def drain_then_audit(rows: DataFrame, pipeline: Pipeline, count: int) -> AuditOutcome:
        if not said:
            sandbox.run("hourly")
        return GxAuditor()(rows, pipeline, count)

    assert sandbox.spark is not None
    with sandbox.metastore() as metastore:
        pipeline = load_pipeline(sandbox.project, "hourly")
        workspace = Workspace(sandbox.project, metastore)
        context = RunContext("r1", "test", on_notice=said.append)
        attempt = Attempt(sandbox.spark, workspace, pipeline, drain_then_audit, context)
        run = replay(attempt, Interval.parse(*FIRST_DAY))
    assert len(said) == 1, "it began once more"
    assert run.counts.published == 2
    assert totals(database) == {"01T06 a": 1, "01T07 late": 1, "03T06 a": 1, "03T07 a": 1}


def test_it_waits_for_a_publish_that_is_under_way_and_sees_what_that_brought(
    sandbox: Sandbox, database: TestDatabase
) -> None:
    hourly(sandbox, INTO_POSTGRES, PLAIN)
    land_and_run(sandbox, "1", "01T06 a")
    target = replaceable_of(sandbox.project, load_pipeline(sandbox.project, "hourly"))
    seen: list[int] = []

    def overtaken(last: int) -> bool:
        seen.append(last)
        return last > 0

    files: list[StagedFile] = []
    app_id = "drawdown/hourly/1/output"
    day, under = Interval.parse(*FIRST_DAY), change()
    new = NewRows(day, files, "hour", app_id, under.lease, overtaken, lambda based_on: under, {})
    with ThreadPoolExecutor(1) as threads, psycopg.connect(database.url) as publish:
        publish.execute("UPDATE drawdown_ledger SET last_batch = 7")
        replacing = threads.submit(target.replace, new)
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%ledger%'"
        )
        while database.execute(waiting) == [(0,)]:
            assert not replacing.done(), "it did not wait"
        publish.commit()
        assert replacing.result() is False
    assert seen == [7]
    assert totals(database) == {"01T06 a": 1}, "nothing is replaced"


def test_a_time_column_that_is_no_time_is_refused(sandbox: Sandbox, database: TestDatabase) -> None:
    sql = PLAIN.replace("date_trunc('hour', at)", "CAST(date_trunc('hour', at) AS STRING)")
    hourly(sandbox, INTO_POSTGRES, sql, out="hour STRING")
    land_and_run(sandbox, "1", "01T06 a", "03T06 a")
    with pytest.raises(RefusedError, match="is STRING") as refused:
        replayed(sandbox, *FIRST_DAY)
    assert refused.value.id == "replay.no-time"
    assert len(database.table()) == 2
