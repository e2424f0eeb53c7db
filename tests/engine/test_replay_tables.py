"""A replay of a pipeline over another one's table reads it as of the version that the live query has read."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.errors import DrawdownError, RefusedError
from drawdown.publishing.replay import refuse_replay
from drawdown.spec import load_pipeline
from drawdown.spec.interval import Interval
from tests.support.replays import REPLAYED, replayed
from tests.support.workspace import Workspace

FIRST_DAY = "2024-01-01", "2024-01-02"
TABLE = "{skipChangeCommits: true}"


def chain(workspace: Workspace, options: str = TABLE, more: str = "") -> None:
    """`hourly` sums up events; `daily` adds up its table."""
    workspace.pipeline(
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
    workspace.pipeline(
        "daily",
        spec + more,
        daily_ddl="day TIMESTAMP, n BIGINT",
        transform_sql="SELECT window.start AS day, sum(n) AS n FROM events GROUP BY window(hour, '1 day')",
    )


def land(workspace: Workspace, file: int, *hours: str) -> None:
    rows = [{"at": f"2024-01-{hour}:30:00Z"} for hour in hours]
    workspace.land_json(f"landing/events/{file}.json", rows, mtime=file)
    workspace.run("hourly")


def days(workspace: Workspace) -> dict[int, int]:
    return {day.day: n for day, n in workspace.delta("tables/daily")}


def refusal(workspace: Workspace, start: str, end: str) -> DrawdownError:
    """The same with Spark and without it."""
    with pytest.raises(RefusedError) as refused:
        replayed(workspace, start, end, "daily")
    pipeline = load_pipeline(workspace.project, "daily")
    with workspace.metastore() as metastore, pytest.raises(RefusedError) as before:
        refuse_replay(workspace.project, pipeline, metastore, Interval.parse(start, end))
    assert str(before.value) == str(refused.value)
    return refused.value


def test_what_a_replay_has_replaced_comes_to_those_that_read_it_by_a_replay_of_theirs(
    workspace: Workspace,
) -> None:
    chain(workspace)
    land(workspace, 1, "01T06", "01T18", "02T06")
    land(workspace, 2, "01T07", "03T06", "04T06")
    workspace.run("daily")
    assert days(workspace) == {1: 2, 2: 1}
    run = replayed(workspace, *FIRST_DAY, "hourly")
    assert [(n["about"], n["do"]) for n in run.notices if n["id"] == "replay.downstream"] == [
        ("daily", "drawdown backfill daily --from 2024-01-01T00:00:00Z --to 2024-01-02T00:00:00Z")
    ]
    with workspace.metastore() as metastore:
        assert [run.kind for run in metastore.runs("daily")] == ["drain"], "nothing of it starts by itself"
    error = refusal(workspace, *FIRST_DAY)
    assert error.id == "replay.source-ahead"
    assert "`drawdown run daily`" in error.do
    workspace.run("daily")
    assert days(workspace) == {1: 2, 2: 1}, "the stream passes over it"
    land(workspace, 3, "05T06")
    replayed(workspace, *FIRST_DAY, "daily")
    assert days(workspace) == {1: 3, 2: 1}, "and nothing of what the stream has not read yet"
    workspace.run("daily")
    assert days(workspace) == {1: 3, 2: 1, 3: 1}


def test_a_version_that_is_gone_or_read_in_part_is_refused_until_the_next_drain(workspace: Workspace) -> None:
    chain(workspace)
    land(workspace, 1, "01T06", "02T06", "02T18")
    land(workspace, 2, "03T06", "04T06")
    workspace.run("daily")
    before = days(workspace)
    table = DeltaTable(str(workspace.storage / "tables/hourly"))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    error = refusal(workspace, *FIRST_DAY)
    assert error.id == "replay.version-gone"
    assert "is cleaned up" in error.what
    workspace.run("daily")
    replayed(workspace, *FIRST_DAY, "daily")
    assert days(workspace) == before

    land(workspace, 3, *(f"04T{hour:02}" for hour in range(7, 24)))
    chain(workspace, "{skipChangeCommits: true, maxFilesPerTrigger: 1}", "drain: {max_batches: 1}")
    workspace.run("daily")
    assert refusal(workspace, *FIRST_DAY).id == "replay.half-read"
    chain(workspace)
    workspace.run("daily")
    replayed(workspace, *FIRST_DAY, "daily")
    assert days(workspace) == {**before, 3: 1}
