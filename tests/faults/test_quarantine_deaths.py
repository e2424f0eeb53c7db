"""A replay of set-aside rows is killed around each of its steps: none of them is lost, none goes in twice."""

from __future__ import annotations

import pytest

from tests.support.deaths import die
from tests.support.set_aside import MENDED, NAME, closed, fill, land, replay, states, write
from tests.support.workspace import Workspace

FULL = pytest.mark.full


@pytest.mark.fault("F04", "delta")
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("after replay.judge", marks=FULL),
        "after replay.note",
        pytest.param("after replay.plan", marks=FULL),
        pytest.param("after batch.note", marks=FULL),
        "after batch.end",
    ],
)
def test_the_next_command_completes_a_replay_that_died(workspace: Workspace, moment: str) -> None:
    fill(workspace)
    write(workspace, MENDED)
    die(workspace, NAME, moment, "quarantine replay")
    noted = moment != "after replay.judge"
    assert states(workspace)["95"] == ("replaying" if noted else "open")
    if moment == "after replay.note":
        assert workspace.run(NAME).counts.replayed == 2, "a scheduled drain does it too"
    else:
        assert replay(workspace).counts.replayed == 2
    assert states(workspace) == {"95": "replayed", "96": "replayed", "150": "open", "broken": "open"}
    assert replay(workspace).counts.replayed == 0
    land(workspace, "c", "3,2024-01-01T11:30:00Z,1")
    workspace.run(NAME)
    assert closed(workspace) == [(10, 4, 24)]
