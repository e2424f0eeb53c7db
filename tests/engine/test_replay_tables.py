"""A replay of a pipeline over another one's table reads it as of the version that the live query has read."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.errors import DrawdownError, RefusedError
from drawdown.replay.publish import refuse_replay
from drawdown.spec import load_pipeline
from drawdown.values.interval import Interval
from drawdown.workspace import Workspace
from tests.support.replays import REPLAYED, replayed
from tests.support.sandbox import Sandbox

FIRST_DAY = "2024-01-01", "2024-01-02"
TABLE = "{skipChangeCommits: true}"


def chain(sandbox: Sandbox, options: str = TABLE, more: str = "") -> None:
    """`hourly` sums up events; `daily` adds up its table."""
    sandbox.pipeline(
        "hourly",
        REPLAYED,
        events_ddl="at TIMESTAMP",
        hourly_ddl="hour TIMESTAMP, n BIGINT",
        transform_sql="SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
    )
    spec = REPLAYED.replace(
        "format: json\n    path: landing/events\n    schema: events.ddl\n    watermark: {column: at, ",
        f"format: delta\n    path: tables/hourly\n    options: {options}\n    watermark: {{column: hour, ",
    )
    spec = spec.replace(
        "path: tables/hourly, schema: hourly.ddl, time_column: hour",
        "path: tables/daily, schema: daily.ddl, time_column: day",
    )
    sandbox.pipeline(
        "daily",
        spec + more,
        daily_ddl="day TIMESTAMP, n BIGINT",
        transform_sql="SELECT window.start AS day, sum(n) AS n FROM events GROUP BY window(hour, '1 day')",
    )


def land(sandbox: Sandbox, file: int, *hours: str) -> None:
    rows = [{"at": f"2024-01-{hour}:30:00Z"} for hour in hours]
    sandbox.land_json(f"landing/events/{file}.json", rows, mtime=file)
    sandbox.run("hourly")


def days(sandbox: Sandbox) -> dict[int, int]:
    return {day.day: n for day, n in sandbox.delta("tables/daily")}


def refusal(sandbox: Sandbox, start: str, end: str) -> DrawdownError:
    """The same with Spark and without it."""
    with pytest.raises(RefusedError) as refused:
        replayed(sandbox, start, end, "daily")
    pipeline = load_pipeline(sandbox.project, "daily")
    with sandbox.metastore() as metastore, pytest.raises(RefusedError) as before:
        refuse_replay(Workspace(sandbox.project, metastore), pipeline, Interval.parse(start, end))
    assert str(before.value) == str(refused.value)
    return refused.value


@pytest.mark.full
def test_what_a_replay_has_replaced_comes_to_those_that_read_it_by_a_replay_of_theirs(
    sandbox: Sandbox,
) -> None:
    chain(sandbox)
    land(sandbox, 1, "01T06", "01T18", "02T06")
    land(sandbox, 2, "01T07", "03T06", "04T06")
    sandbox.run("daily")
    assert days(sandbox) == {1: 2, 2: 1}
    run = replayed(sandbox, *FIRST_DAY, "hourly")
    assert [(n["about"], n["do"]) for n in run.notices if n["id"] == "replay.downstream"] == [
        ("daily", "drawdown backfill daily --from 2024-01-01T00:00:00Z --to 2024-01-02T00:00:00Z")
    ]
    with sandbox.metastore() as metastore:
        assert [run.kind for run in metastore.runs("daily")] == ["drain"], "nothing of it starts by itself"
    error = refusal(sandbox, *FIRST_DAY)
    assert error.id == "replay.source-ahead"
    assert "`drawdown run daily`" in error.do
    sandbox.run("daily")
    assert days(sandbox) == {1: 2, 2: 1}, "the stream passes over it"
    land(sandbox, 3, "05T06")
    replayed(sandbox, *FIRST_DAY, "daily")
    assert days(sandbox) == {1: 3, 2: 1}, "and nothing of what the stream has not read yet"
    sandbox.run("daily")
    assert days(sandbox) == {1: 3, 2: 1, 3: 1}


def test_a_version_that_is_gone_or_read_in_part_is_refused_until_the_next_drain(sandbox: Sandbox) -> None:
    chain(sandbox)
    land(sandbox, 1, "01T06", "02T06", "02T18")
    land(sandbox, 2, "03T06", "04T06")
    sandbox.run("daily")
    before = days(sandbox)
    table = DeltaTable(str(sandbox.storage / "tables/hourly"))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    error = refusal(sandbox, *FIRST_DAY)
    assert error.id == "replay.version-gone"
    assert "is cleaned up" in error.what
    sandbox.run("daily")
    replayed(sandbox, *FIRST_DAY, "daily")
    assert days(sandbox) == before

    land(sandbox, 3, *(f"04T{hour:02}" for hour in range(7, 24)))
    chain(sandbox, "{skipChangeCommits: true, maxFilesPerTrigger: 1}", "drain: {max_batches: 1}")
    sandbox.run("daily")
    assert refusal(sandbox, *FIRST_DAY).id == "replay.half-read"
    chain(sandbox)
    sandbox.run("daily")
    replayed(sandbox, *FIRST_DAY, "daily")
    assert days(sandbox) == {**before, 3: 1}
