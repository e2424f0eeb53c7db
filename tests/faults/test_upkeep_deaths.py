"""An upkeep is killed around each of its steps: nobody notices, and the next one goes on."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from drawdown.fault_points import UPKEEP_STEPS
from tests.engine.test_upkeep import EVENTS, arrive, events, ids
from tests.support.ageing import grow_old
from tests.support.deaths import die
from tests.support.sandbox import Sandbox
from tests.support.tidying import MONTH, tidied

__all__ = ["events"]


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.full), "after"])
def test_an_upkeep_that_is_killed_at_any_step_changes_no_row(events: Sandbox, when: str) -> None:
    events.pipeline("events", EVENTS + "retention: {quarantine_open: 1 second}")
    number = 8
    for moment in (f"{when} {step}" for step in UPKEEP_STEPS):
        arrive(events, *range(number, number + 8))
        number += 8
        events.land(f"landing/events/broken-{number}.json", ["{no json"], mtime=number)
        events.run("events")
        grow_old(events, MONTH)
        if "vacuum" in moment:
            # There is something to remove only after a compaction.
            tidied(events, "events")
            grow_old(events, MONTH)
        die(events, "events", moment, "upkeep")
        assert ids(events) == list(range(number)), moment
    tidied(events, "events")
    assert len(DeltaTable(str(events.storage / "tables/events")).file_uris()) == 1
    assert ids(events) == list(range(number))
    assert events.quarantined("events") == []
    with events.metastore() as metastore:
        assert metastore.open_runs("events") == []
        assert metastore.open_changes("events") == []


@pytest.mark.full
def test_a_drain_goes_on_behind_an_upkeep_that_was_killed(events: Sandbox) -> None:
    die(events, "events", "after upkeep.compact", "upkeep")
    assert events.drain("events")[0].run is None, "nothing to settle: no Spark starts"
