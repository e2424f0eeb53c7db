"""`drawdown backfill` as a stranger types it: the commands of docs/replay.md, and what it refuses."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.test_commands import refused
from tests.support.command_line import answer, drawdown
from tests.support.replays import REPLAYED
from tests.support.sandbox import Sandbox

PAGE = Path(__file__).parents[2] / "docs/replay.md"


def commands() -> list[list[str]]:
    [block] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return [shlex.split(line)[1:] for line in block.splitlines()]


@pytest.fixture
def drained(sandbox: Sandbox) -> Sandbox:
    """Three days are closed; an event of the first came too late for its window."""
    sandbox.pipeline(
        "hourly",
        REPLAYED,
        events_ddl="at TIMESTAMP",
        hourly_ddl="hour TIMESTAMP, n BIGINT",
        transform_sql="SELECT window.start AS hour, count(*) AS n FROM events GROUP BY window(at, '1 hour')",
    )
    for number, hours in enumerate((["01T06", "02T06", "03T06", "04T06"], ["01T06", "04T07"])):
        rows = [{"at": f"2024-01-{hour}:30:00Z"} for hour in hours]
        sandbox.land_json(f"landing/events/{number}.json", rows, mtime=number + 1)
        sandbox.run("hourly")
    return sandbox


def counted(sandbox: Sandbox) -> list[int]:
    return [n for _, n in sandbox.delta("tables/hourly")]


@pytest.mark.full
def test_the_commands_of_the_page_do_what_it_says(drained: Sandbox) -> None:
    assert counted(drained)[:3] == [1, 1, 1]
    possible = drawdown(drained.root, "backfill", "hourly")
    assert "hourly: intervals that end at or before 2024-01-04 " in possible.stdout, possible.stderr
    days, quarters = (drawdown(drained.root, *command) for command in commands())
    assert days.returncode == 0, days.stderr
    assert "3 of 3 intervals replaced, by 3 rows" in days.stdout
    assert quarters.returncode == 0, quarters.stderr
    assert [each["error"] for each in answer(quarters.stdout)] == [None] * 4
    assert counted(drained)[:3] == [2, 1, 1], "with what had come too late"


@pytest.mark.full
def test_what_cannot_be_replayed_is_one_error_and_changes_nothing(drained: Sandbox) -> None:
    before = counted(drained)
    span = ["--from", "2024-01-01", "--to", "2024-01-02"]
    refused(drawdown(drained.root, "backfill", "hourly", *span, "--interval", "soon"), 2, "replay.interval")
    refused(drawdown(drained.root, "backfill", "hourly", "--from", "x", "--to", "y"), 2, "replay.interval")
    still_open = drawdown(drained.root, "backfill", "hourly", "--from", "2024-01-04", "--to", "2024-01-05")
    assert "the watermark of hourly is at" in refused(still_open, 3, "replay.open")
    assert counted(drained) == before
