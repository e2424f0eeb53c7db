"""What upkeep keeps for later: a roll back of a rebuild, a replay of an old interval, a restored snapshot."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.errors import RefusedError
from tests.engine.test_replay_tables import FIRST_DAY, chain, days, land
from tests.support.command_line import drawdown
from tests.support.rebuilds import NAME, Hourly, event, sums
from tests.support.replays import replayed
from tests.support.tidying import tidied, tidied_after

FIRST = [event(f"02T{hour:02}:10", hour, "ab"[hour % 2]) for hour in range(9)]
SECOND = [event("02T09:10", 9), event("02T11:10", 11)]


@pytest.mark.full
def test_a_rebuild_is_rolled_back_after_a_month(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(0, FIRST)
    hourly.next_version()
    hourly.rebuilt()
    hourly.end("approve")
    hourly.arrive_and_run(1, SECOND)
    done = tidied_after(hourly, NAME)
    assert any("for a roll back: drawdown checkpoint prune hourly --previous" in note for note in done.notes)
    assert hourly.rows() == sums(FIRST + SECOND, "02T11")
    hourly.end("rollback")
    assert hourly.rows() == sums(FIRST, "02T08", by_key=False)
    hourly.run(NAME)
    assert hourly.rows() == sums(FIRST + SECOND, "02T11", by_key=False)


@pytest.mark.full
def test_what_was_before_a_swap_goes_when_nobody_goes_back(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(0, FIRST)
    hourly.next_version()
    hourly.rebuilt()
    hourly.end("approve")
    tidied(hourly, NAME)
    assert drawdown(hourly.root, "checkpoint", "prune", NAME, "--previous").returncode == 0
    gone = tidied_after(hourly, NAME)
    assert gone.vacuumed["output"] != []
    assert gone.records["batches"] > 0, "of the old generation"
    assert hourly.rows() == sums(FIRST, "02T08")
    with pytest.raises(RefusedError) as refused:
        hourly.end("rollback")
    assert refused.value.id == "rebuild.pruned"


@pytest.mark.full
def test_an_old_interval_is_replayed_from_the_version_that_was_read(hourly: Hourly) -> None:
    """Its table was compacted since, and nobody has drained what reads it."""
    chain(hourly)
    for day in range(1, 10):
        land(hourly, day, f"{day:02}T06", f"{day:02}T18")
    hourly.run("daily")
    before = days(hourly)
    assert tidied(hourly, "hourly").compacted["output"].after == 1
    tidied_after(hourly, "hourly")
    replayed(hourly, *FIRST_DAY, "daily")
    assert days(hourly) == before
    land(hourly, 10, "10T06", "11T06")
    hourly.run("daily")
    assert len(tidied_after(hourly, "hourly").vacuumed["output"]) >= 9
    replayed(hourly, *FIRST_DAY, "daily")
    assert before.items() <= days(hourly).items()


def test_a_snapshot_is_restored_with_its_sink_after_a_month(hourly: Hourly) -> None:
    hourly.live_version()
    hourly.arrive_and_run(0, FIRST)
    assert drawdown(hourly.root, "checkpoint", "snapshot", NAME).returncode == 0
    hourly.arrive_and_run(1, SECOND)
    expected = hourly.rows()
    DeltaTable(str(hourly.storage / "tables/hourly")).optimize.compact()
    tidied_after(hourly, NAME)
    back = drawdown(hourly.root, "checkpoint", "restore", NAME, "latest", "--sink")
    assert back.returncode == 0, back.stderr
    assert hourly.rows() == sums(FIRST, "02T08", by_key=False)
    hourly.run(NAME)
    assert hourly.rows() == expected
