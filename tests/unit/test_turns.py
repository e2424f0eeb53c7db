"""Turns of a group: who waits for whom, how many at once, and what becomes of one that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from drawdown.errors import DrawdownError, SpecError
from drawdown.group import Slots, Turn, Turns
from drawdown.spec import Pipeline
from tests.support.workspace import Workspace

STUCK = DrawdownError("drain.stuck", "it was given up")
PATIENCE = 20.0


class Group:
    """Pipelines `name=[what it reads]`, and what their turns do."""

    grace = PATIENCE

    def __init__(self, root: Path, drain: str = "", **reads: list[str]) -> None:
        self.pipelines = list(_pipelines(Workspace(root), drain, reads))
        self.stop = threading.Event()
        self.log: list[str] = []
        self.work: Callable[[Turn], object] = lambda turn: None
        self.signs: Callable[[Turn], object] = lambda turn: None
        self.given_up: list[str] = []
        self.told: list[str] = []

    def take(self) -> list[str]:
        numbers = count()
        self.turns = Turns(
            self._work,
            lambda turn: self.signs(turn),
            self._give_up,
            lambda turn: f"{turn.pipeline.name} left behind",
            self.told.append,
            self.stop,
            lambda: f"run-{next(numbers)}",
            self.grace,
        )
        return self.turns.take(self.pipelines)

    def _work(self, turn: Turn) -> str:
        self.log.append(f"{turn.pipeline.name} begins")
        self.work(turn)
        self.log.append(f"{turn.pipeline.name} ends")
        return turn.pipeline.name

    def _give_up(self, turn: Turn) -> None:
        turn.given_up = STUCK
        self.given_up.append(turn.pipeline.name)


def _pipelines(workspace: Workspace, drain: str, reads: dict[str, list[str]]) -> list[Pipeline]:
    made = []
    for name, upstream in reads.items():
        paths = [f"tables/{each}" for each in upstream] or [f"landing/{name}"]
        sources = ", ".join(f"s{n}: {{format: delta, path: {path}}}" for n, path in enumerate(paths))
        spec = (
            f"sources: {{{sources}}}\nsink: {{format: delta, path: tables/{name}, schema: id.ddl}}\n{drain}"
        )
        made.append(workspace.pipeline(name, spec, transform_sql="SELECT 1", id_ddl="id INT"))
    return made


def test_those_that_wait_for_no_other_go_on_together(tmp_path: Path) -> None:
    group = Group(tmp_path, left=[], right=[])
    met = threading.Barrier(2, timeout=PATIENCE)
    group.work = lambda turn: met.wait()
    assert group.take() == ["left", "right"]


def test_a_diamond_goes_from_its_top_to_its_foot(tmp_path: Path) -> None:
    group = Group(tmp_path, foot=["left", "right"], left=["top"], right=["top"], top=[])
    met = threading.Barrier(2, timeout=PATIENCE)
    group.work = lambda turn: met.wait() if turn.pipeline.name in ("left", "right") else None
    assert group.take()[0] == "top"
    assert group.log[:2] == ["top begins", "top ends"]
    assert group.log[-2:] == ["foot begins", "foot ends"]


def test_those_that_wait_for_each_other_are_refused(tmp_path: Path) -> None:
    group = Group(tmp_path, a=["b"], b=["a"])
    with pytest.raises(SpecError, match="wait for each other") as refused:
        group.take()
    assert refused.value.id == "group.cycle"
    assert group.log == []


def test_what_a_turn_raises_is_raised_after_the_others_have_ended(tmp_path: Path) -> None:
    group = Group(tmp_path, bad=[], after=["bad"])

    def work(turn: Turn) -> None:
        if turn.pipeline.name == "bad":
            raise LookupError("a bug")

    group.work = work
    with pytest.raises(LookupError, match="a bug"):
        group.take()
    assert group.log[-1] == "after ends"


def test_after_a_stop_no_turn_begins_and_those_under_way_end(tmp_path: Path) -> None:
    group = Group(tmp_path, first=[], second=["first"])
    group.work = lambda turn: group.stop.set()
    assert group.take() == ["first"]
    assert group.log == ["first begins", "first ends"]


def test_a_stuck_turn_is_given_up_and_its_downstream_goes_on(tmp_path: Path) -> None:
    group = Group(tmp_path, "drain: {stuck_after: 500 milliseconds}", stuck=[], after=["stuck"])

    def work(turn: Turn) -> None:
        patience = time.monotonic() + PATIENCE
        while turn.pipeline.name == "stuck" and turn.given_up is None and time.monotonic() < patience:
            time.sleep(0.01)

    group.work = work
    assert group.take() == ["stuck", "after"]
    assert group.given_up == ["stuck"]
    assert group.log[-1] == "after ends"
    assert group.turns.abandoned == []


def test_a_turn_that_never_returns_is_left_behind(tmp_path: Path) -> None:
    group = Group(tmp_path, "drain: {stuck_after: 500 milliseconds}", never=[], after=["never"])
    let_go, group.grace = threading.Event(), 0.1
    group.work = lambda turn: let_go.wait(PATIENCE) if turn.pipeline.name == "never" else None
    try:
        assert group.take() == ["never left behind", "after"]
        assert [turn.pipeline.name for turn in group.turns.abandoned] == ["never"]
        assert "never ends" not in group.log
        assert sorted(group.told) == ["after", "never left behind"]
    finally:
        let_go.set()


def test_a_turn_in_which_spark_goes_on_is_not_stuck(tmp_path: Path) -> None:
    group = Group(tmp_path, "drain: {stuck_after: 800 milliseconds}", slow=[])
    tasks, enough = count(), threading.Event()

    def signs(turn: Turn) -> int:
        seen = next(tasks)
        if seen == 12:  # for twice as long as it may be silent
            enough.set()
        return seen

    group.signs, group.work = signs, lambda turn: enough.wait(PATIENCE)
    assert group.take() == ["slow"]
    assert group.given_up == []


def test_a_turn_that_waits_for_its_slot_is_not_stuck(tmp_path: Path) -> None:
    group = Group(tmp_path, "drain: {stuck_after: 200 milliseconds}", one=[], other=[])
    slots, alone = Slots(), threading.Lock()

    def work(turn: Turn) -> None:
        with turn.waiting():
            assert slots.take(turn, 1, group.stop)
        assert alone.acquire(blocking=False)
        for _ in range(20):
            turn.moved()
            time.sleep(0.05)
        alone.release()
        slots.give_back(turn)

    group.work = work
    assert sorted(group.take()) == ["one", "other"]
    assert group.given_up == []


def test_a_slot_is_not_waited_for_after_a_stop(tmp_path: Path) -> None:
    group = Group(tmp_path, one=[], other=[])
    slots, took = Slots(), list[bool]()

    def work(turn: Turn) -> None:
        took.append(slots.take(turn, 1, group.stop))
        group.stop.set()

    group.work = work
    group.take()
    assert sorted(took) == [False, True]
