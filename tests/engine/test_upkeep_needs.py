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
from tests.support.sandbox import Sandbox
from tests.support.tidying import tidied, tidied_after

FIRST = [event(f"02T{hour:02}:10", hour, "ab"[hour % 2]) for hour in range(9)]
SECOND = [event("02T09:10", 9), event("02T11:10", 11)]


@pytest.mark.full
def test_a_rebuild_is_rolled_back_after_a_month(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land_hours(sandbox, 0, FIRST)
    sandbox.run(NAME)
    next_version(sandbox)
    rebuilt(sandbox)
    end(sandbox, "approve")
    land_hours(sandbox, 1, SECOND)
    sandbox.run(NAME)
    done = tidied_after(sandbox, NAME)
    assert any("for a roll back: drawdown checkpoint prune hourly --previous" in note for note in done.notes)
    assert rows(sandbox) == sums(FIRST + SECOND, "02T11")
    end(sandbox, "rollback")
    assert rows(sandbox) == sums(FIRST, "02T08", by_key=False)
    sandbox.run(NAME)
    assert rows(sandbox) == sums(FIRST + SECOND, "02T11", by_key=False)


@pytest.mark.full
def test_what_was_before_a_swap_goes_when_nobody_goes_back(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land_hours(sandbox, 0, FIRST)
    sandbox.run(NAME)
    next_version(sandbox)
    rebuilt(sandbox)
    end(sandbox, "approve")
    tidied(sandbox, NAME)
    assert drawdown(sandbox.root, "checkpoint", "prune", NAME, "--previous").returncode == 0
    gone = tidied_after(sandbox, NAME)
    assert gone.vacuumed["output"] != []
    assert gone.records["batches"] > 0, "of the old generation"
    assert rows(sandbox) == sums(FIRST, "02T08")
    with pytest.raises(RefusedError) as refused:
        end(sandbox, "rollback")
    assert refused.value.id == "rebuild.pruned"


@pytest.mark.full
def test_an_old_interval_is_replayed_from_the_version_that_was_read(sandbox: Sandbox) -> None:
    """Its table was compacted since, and nobody has drained what reads it."""
    chain(sandbox)
    for day in range(1, 10):
        land(sandbox, day, f"{day:02}T06", f"{day:02}T18")
    sandbox.run("daily")
    before = days(sandbox)
    assert tidied(sandbox, "hourly").compacted["output"].after == 1
    tidied_after(sandbox, "hourly")
    replayed(sandbox, *FIRST_DAY, "daily")
    assert days(sandbox) == before
    land(sandbox, 10, "10T06", "11T06")
    sandbox.run("daily")
    assert len(tidied_after(sandbox, "hourly").vacuumed["output"]) >= 9
    replayed(sandbox, *FIRST_DAY, "daily")
    assert before.items() <= days(sandbox).items()


def test_a_snapshot_is_restored_with_its_sink_after_a_month(sandbox: Sandbox) -> None:
    live_version(sandbox)
    land_hours(sandbox, 0, FIRST)
    sandbox.run(NAME)
    assert drawdown(sandbox.root, "checkpoint", "snapshot", NAME).returncode == 0
    land_hours(sandbox, 1, SECOND)
    sandbox.run(NAME)
    expected = rows(sandbox)
    DeltaTable(str(sandbox.storage / "tables/hourly")).optimize.compact()
    tidied_after(sandbox, NAME)
    back = drawdown(sandbox.root, "checkpoint", "restore", NAME, "latest", "--sink")
    assert back.returncode == 0, back.stderr
    assert rows(sandbox) == sums(FIRST, "02T08", by_key=False)
    sandbox.run(NAME)
    assert rows(sandbox) == expected
