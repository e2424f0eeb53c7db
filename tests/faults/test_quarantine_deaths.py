"""A replay of set-aside rows is killed around each of its steps: none of them is lost, none goes in twice."""

from __future__ import annotations

import pytest

from tests.support.deaths import die
from tests.support.sandbox import Sandbox
from tests.support.set_aside import CORRECTED, NAME, closed, fill, land, replay, states, write

FULL = pytest.mark.full


@pytest.mark.fault("F04", "delta")
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("after replay.judge", marks=FULL),
        pytest.param("after replay.note", marks=FULL),
        pytest.param("after replay.plan", marks=FULL),
        pytest.param("after batch.note", marks=FULL),
        "after batch.end",
    ],
)
def test_the_next_command_completes_a_replay_that_died(sandbox: Sandbox, moment: str) -> None:
    fill(sandbox)
    write(sandbox, CORRECTED)
    die(sandbox, NAME, moment, "quarantine replay")
    noted = moment != "after replay.judge"
    assert states(sandbox)["95"] == ("replaying" if noted else "open")
    if moment == "after replay.note":
        assert sandbox.run(NAME).counts.replayed == 2, "a scheduled drain does it too"
    else:
        assert replay(sandbox).counts.replayed == 2
    assert states(sandbox) == {"95": "replayed", "96": "replayed", "150": "open", "broken": "open"}
    assert replay(sandbox).counts.replayed == 0
    land(sandbox, "c", "3,2024-01-01T11:30:00Z,1")
    sandbox.run(NAME)
    assert closed(sandbox) == [(10, 4, 24)]
