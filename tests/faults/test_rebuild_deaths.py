"""A rebuild, its swap and its roll back are killed around each step: the same command completes them."""

from __future__ import annotations

import pytest

from drawdown.errors import RefusedError
from tests.support.deaths import die
from tests.support.rebuilds import (
    NAME,
    comparison,
    end,
    event,
    land,
    live_version,
    next_version,
    rebuilt,
    rows,
    sums,
)
from tests.support.sandbox import Sandbox

FULL = pytest.mark.full
FIRST = [event("02T06:10", 1), event("02T06:20", 2, "b"), event("02T07:30", 4)]
SECOND = [event("02T08:10", 8, "b"), event("02T09:10", 16)]
THIRD = [event("02T09:50", 32, "b"), event("02T11:10", 64)]


@pytest.fixture
def drained(sandbox: Sandbox) -> Sandbox:
    live_version(sandbox)
    for number, events in enumerate((FIRST, SECOND)):
        land(sandbox, number, events)
        sandbox.run(NAME)
    next_version(sandbox)
    return sandbox


@pytest.mark.full
@pytest.mark.fault("F04", "delta")
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("after checkpoint.note", marks=FULL),
        "after batch.note 2",
        pytest.param("after publish.commit", marks=FULL),
        pytest.param("after rebuild.compare", marks=FULL),
    ],
)
def test_a_rebuild_that_died_goes_on_and_drains_do_not_notice(drained: Sandbox, moment: str) -> None:
    die(drained, NAME, moment, "rebuild start")
    land(drained, 3, THIRD)
    assert drained.run(NAME).generation == 1
    assert rows(drained) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    rebuilt(drained)
    assert comparison(drained)["late"] == {"live": 0, "shadow": 0}
    with drained.metastore() as metastore:
        states = [run.state for run in metastore.runs(NAME) if run.kind == "rebuild"]
    assert states == ["succeeded", "crashed"]
    end(drained, "approve")
    assert rows(drained) == sums(FIRST + SECOND + THIRD, "02T11")


@pytest.mark.fault("F07", "delta")
@pytest.mark.parametrize(
    ("swap", "back"),
    [
        ("after rebuild.swap 2", "after rollback.commit 2"),
        pytest.param("after rebuild.begin", "after rollback.begin", marks=FULL),
        pytest.param("after rebuild.swap 1", "after rollback.commit 1", marks=FULL),
        pytest.param("after rebuild.note", "after rollback.note", marks=FULL),
    ],
)
def test_a_swap_and_a_roll_back_that_died_are_completed_and_until_then_nothing_else_begins(
    drained: Sandbox, swap: str, back: str
) -> None:
    rebuilt(drained)
    die(drained, NAME, swap, "rebuild approve --why x")
    land(drained, 3, THIRD)
    if swap != "after rebuild.note":
        refused_meanwhile(drained, "drawdown rebuild approve hourly")
        end(drained, "approve")
    assert drained.run(NAME).generation == 2
    assert rows(drained) == sums(FIRST + SECOND + THIRD, "02T11")
    die(drained, NAME, back, "rebuild rollback --why x")
    if back != "after rollback.note":
        refused_meanwhile(drained, "drawdown rebuild rollback hourly")
        end(drained, "rollback")
    assert rows(drained) == sums(FIRST + SECOND, "02T09", by_key=False)
    assert drained.run(NAME).generation == 1
    assert rows(drained) == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)


def refused_meanwhile(sandbox: Sandbox, command: str) -> None:
    """A drain and the start of another rebuild."""
    error = sandbox.drain(NAME)[0].error
    assert error is not None
    assert error.id == "rebuild.unfinished"
    assert command in str(error.do)
    with pytest.raises(RefusedError) as refused:
        rebuilt(sandbox)
    assert refused.value.id == "rebuild.unfinished"


@FULL
def test_a_discard_that_died_leaves_its_files_to_prune_and_the_way_free(drained: Sandbox) -> None:
    rebuilt(drained)
    die(drained, NAME, "after rebuild.discard", "rebuild discard --why x")
    assert rebuilt(drained).generation == 3
    end(drained, "approve")
    assert rows(drained) == sums(FIRST + SECOND, "02T09")
