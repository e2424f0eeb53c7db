"""Fault points: what the environment may ask for, and that it is free to ask for nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drawdown import fault_points
from drawdown.errors import SpecError
from drawdown.fault_points import (
    FAULT,
    QUARANTINE_STEPS,
    REBUILD_STEPS,
    RECOVERY_STEPS,
    REMOVE_STEPS,
    RENAME_STEPS,
    REPLAY_STEPS,
    STEPS,
    UPKEEP_STEPS,
    Fault,
    durable,
)

INCLUDE = Path(fault_points.__file__).parent


def _process(fault: str) -> subprocess.CompletedProcess[str]:
    program = (
        "from drawdown.fault_points import durable\n"
        "for nth in (1, 2, 3):\n"
        "    with durable('batch.note'):\n"
        "        print('in', nth, flush=True)\n"
        "    print('out', nth, flush=True)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, FAULT: fault},
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )


def test_every_step_is_a_place_in_the_code_and_every_place_a_step() -> None:
    found = [
        step
        for path in INCLUDE.rglob("*.py")
        if path.name != "fault_points.py"
        for step in re.findall(r"durable\(\"([^\"]+)\"\)", path.read_text())
    ]
    named = (
        QUARANTINE_STEPS,
        REPLAY_STEPS,
        REBUILD_STEPS,
        RECOVERY_STEPS,
        UPKEEP_STEPS,
        RENAME_STEPS,
        REMOVE_STEPS,
    )
    assert sorted(found) == sorted((*STEPS, *(step for steps in named for step in steps)))


@pytest.mark.parametrize(
    ("fault", "last_word"), [("kill before batch.note 2", "out 1"), ("kill after batch.note 2", "in 2")]
)
def test_a_kill_strikes_around_the_nth_step(fault: str, last_word: str) -> None:
    ended = _process(fault)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.splitlines()[-1] == last_word


def test_a_failing_step_raises_what_a_disk_would() -> None:
    ended = _process("fail before batch.note")
    assert ended.returncode == 1
    assert "OSError: DRAWDOWN_FAULT=fail before batch.note 1" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("fault", ["", "kill after run.close"])
def test_other_steps_are_left_alone(fault: str) -> None:
    assert _process(fault).stdout.splitlines()[-1] == "out 3"


def test_an_unset_point_makes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FAULT, raising=False)
    fault_points._armed.cache_clear()
    assert durable("batch.note") is durable("run.close")


@pytest.mark.parametrize(
    "text", ["kill", "explode after batch.note", "kill after batch.nite", "kill after batch.note 0"]
)
def test_what_is_no_fault_is_named(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        Fault.parse(text)
    assert caught.value.id == "fault.unknown"
    assert "batch.note" in caught.value.do
