"""A rebuild, its swap and its roll back are killed around each step: the same command completes them."""

from __future__ import annotations

import pytest

from drawdown.errors import RefusedError
from tests.support.deaths import die
from tests.support.rebuilds import FIRST, NAME, SECOND, THIRD, Hourly, sums

FULL = pytest.mark.full


@pytest.fixture
def drained(hourly: Hourly) -> Hourly:
    hourly.live_version()
    for number, events in enumerate((FIRST, SECOND)):
        hourly.arrive_and_run(number, events)
    hourly.next_version()
    return hourly


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
def test_a_rebuild_that_died_goes_on_and_drains_do_not_notice(drained: Hourly, moment: str) -> None:
    die(drained, NAME, moment, "rebuild start")
    drained.arrive(3, THIRD)
    assert drained.run(NAME).generation == 1
    assert drained.rows() == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)
    drained.rebuilt()
    assert drained.comparison()["late"] == {"live": 0, "shadow": 0}
    with drained.metastore() as metastore:
        states = [run.state for run in metastore.runs(NAME) if run.kind == "rebuild"]
    assert states == ["succeeded", "crashed"]
    drained.end("approve")
    assert drained.rows() == sums(FIRST + SECOND + THIRD, "02T11")


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
    drained: Hourly, swap: str, back: str
) -> None:
    drained.rebuilt()
    die(drained, NAME, swap, "rebuild approve --why x")
    drained.arrive(3, THIRD)
    if swap != "after rebuild.note":
        refused_meanwhile(drained, "drawdown rebuild approve hourly")
        drained.end("approve")
    assert drained.run(NAME).generation == 2
    assert drained.rows() == sums(FIRST + SECOND + THIRD, "02T11")
    die(drained, NAME, back, "rebuild rollback --why x")
    if back != "after rollback.note":
        refused_meanwhile(drained, "drawdown rebuild rollback hourly")
        drained.end("rollback")
    assert drained.rows() == sums(FIRST + SECOND, "02T09", by_key=False)
    assert drained.run(NAME).generation == 1
    assert drained.rows() == sums(FIRST + SECOND + THIRD, "02T11", by_key=False)


def refused_meanwhile(hourly: Hourly, command: str) -> None:
    """A drain and the start of another rebuild."""
    error = hourly.drain(NAME)[0].error
    assert error is not None
    assert error.id == "rebuild.unfinished"
    assert command in str(error.do)
    with pytest.raises(RefusedError) as refused:
        hourly.rebuilt()
    assert refused.value.id == "rebuild.unfinished"


@FULL
def test_a_discard_that_died_leaves_its_files_to_prune_and_the_way_free(drained: Hourly) -> None:
    drained.rebuilt()
    die(drained, NAME, "after rebuild.discard", "rebuild discard --why x")
    assert drained.rebuilt().generation == 3
    drained.end("approve")
    assert drained.rows() == sums(FIRST + SECOND, "02T09")
