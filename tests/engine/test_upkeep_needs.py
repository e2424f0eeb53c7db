"""What upkeep keeps for later: a roll back of a rebuild, a replay of an old interval, a restored snapshot."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.errors import RefusedError
from tests.engine.test_replay_tables import FIRST_DAY, chain, days, land
from tests.support.command_line import drawdown
from tests.support.rebuilds import NAME, end, event, live_version, next_version, rebuilt, rows, sums
from tests.support.rebuilds import land as land_hours
from tests.support.replays import replayed
from tests.support.tidying import tidied, tidied_after
from tests.support.workspace import Workspace

FIRST = [event(f"02T{hour:02}:10", hour, "ab"[hour % 2]) for hour in range(9)]
SECOND = [event("02T09:10", 9), event("02T11:10", 11)]


def test_a_rebuild_is_rolled_back_after_a_month(workspace: Workspace) -> None:
    live_version(workspace)
    land_hours(workspace, 0, FIRST)
    workspace.run(NAME)
    next_version(workspace)
    rebuilt(workspace)
    end(workspace, "approve")
    land_hours(workspace, 1, SECOND)
    workspace.run(NAME)
    done = tidied_after(workspace, NAME)
    assert any("for a roll back: drawdown checkpoint prune hourly --previous" in note for note in done.notes)
    assert rows(workspace) == sums(FIRST + SECOND, "02T11")
    end(workspace, "rollback")
    assert rows(workspace) == sums(FIRST, "02T08", by_key=False)
    workspace.run(NAME)
    assert rows(workspace) == sums(FIRST + SECOND, "02T11", by_key=False)


@pytest.mark.full
def test_what_was_before_a_swap_goes_when_nobody_goes_back(workspace: Workspace) -> None:
    live_version(workspace)
    land_hours(workspace, 0, FIRST)
    workspace.run(NAME)
    next_version(workspace)
    rebuilt(workspace)
    end(workspace, "approve")
    tidied(workspace, NAME)
    assert drawdown(workspace.root, "checkpoint", "prune", NAME, "--previous").returncode == 0
    gone = tidied_after(workspace, NAME)
    assert gone.vacuumed["output"] != []
    assert gone.records["batches"] > 0, "of the old generation"
    assert rows(workspace) == sums(FIRST, "02T08")
    with pytest.raises(RefusedError) as refused:
        end(workspace, "rollback")
    assert refused.value.id == "rebuild.pruned"


@pytest.mark.full
def test_an_old_interval_is_replayed_from_the_version_that_was_read(workspace: Workspace) -> None:
    """Its table was compacted since, and nobody has drained what reads it."""
    chain(workspace)
    for day in range(1, 10):
        land(workspace, day, f"{day:02}T06", f"{day:02}T18")
    workspace.run("daily")
    before = days(workspace)
    assert tidied(workspace, "hourly").compacted["output"].after == 1
    tidied_after(workspace, "hourly")
    replayed(workspace, *FIRST_DAY, "daily")
    assert days(workspace) == before
    land(workspace, 10, "10T06", "11T06")
    workspace.run("daily")
    assert len(tidied_after(workspace, "hourly").vacuumed["output"]) >= 9
    replayed(workspace, *FIRST_DAY, "daily")
    assert before.items() <= days(workspace).items()


def test_a_snapshot_is_restored_with_its_sink_after_a_month(workspace: Workspace) -> None:
    live_version(workspace)
    land_hours(workspace, 0, FIRST)
    workspace.run(NAME)
    assert drawdown(workspace.root, "checkpoint", "snapshot", NAME).returncode == 0
    land_hours(workspace, 1, SECOND)
    workspace.run(NAME)
    expected = rows(workspace)
    DeltaTable(str(workspace.storage / "tables/hourly")).optimize.compact()
    tidied_after(workspace, NAME)
    back = drawdown(workspace.root, "checkpoint", "restore", NAME, "latest", "--sink")
    assert back.returncode == 0, back.stderr
    assert rows(workspace) == sums(FIRST, "02T08", by_key=False)
    workspace.run(NAME)
    assert rows(workspace) == expected
