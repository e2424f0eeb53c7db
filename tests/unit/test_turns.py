"""Turns of a group: who waits for whom, how many at once, and what becomes of one that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from drawdown.application.scheduler import PipelineTask, Scheduler, Slots
from drawdown.errors import DrawdownError, SpecError
from drawdown.spec import Pipeline
from tests.support.sandbox import Sandbox

STUCK = DrawdownError("drain.stuck", "it was given up")
PATIENCE = 20.0


class Group:
    """Pipelines `name=[what it reads]`, and what their turns do."""

    grace = PATIENCE

    def __init__(self, root: Path, drain: str = "", **reads: list[str]) -> None:
        self.pipelines = list(_pipelines(Sandbox(root), drain, reads))
        self.stop = threading.Event()
        self.log: list[str] = []
        self.work: Callable[[PipelineTask], object] = lambda turn: None
        self.signs: Callable[[PipelineTask], object] = lambda turn: None
        self.given_up: list[str] = []
        self.told: list[str] = []
        self.on_told: Callable[[str], None] = lambda told: None
        self.on_watch: dict[str, Callable[[PipelineTask], None]] = {}

    def take(self) -> list[str]:
        numbers = count()
        self.turns = Scheduler(
            self._work,
            self._signs,
            self._give_up,
            self._abandon,
            self._told,
            self.stop,
            lambda: f"run-{next(numbers)}",
            self.grace,
            failed=lambda turn, cause: f"{turn.pipeline.name} failed: {cause}",
        )
        return self.turns.take(self.pipelines)

    def _work(self, turn: PipelineTask) -> str:
        self.log.append(f"{turn.pipeline.name} begins")
        self.work(turn)
        self.log.append(f"{turn.pipeline.name} ends")
        return turn.pipeline.name

    def _watch(self, what: str, turn: PipelineTask) -> None:
        self.on_watch.get(what, lambda turn: None)(turn)

    def _signs(self, turn: PipelineTask) -> object:
        self._watch("signs", turn)
        return self.signs(turn)

    def _abandon(self, turn: PipelineTask) -> str:
        self._watch("abandon", turn)
        return f"{turn.pipeline.name} left behind"

    def _told(self, told: str) -> None:
        self.told.append(told)
        self.on_told(told)

    def _give_up(self, turn: PipelineTask) -> None:
        self._watch("give_up", turn)
        turn.given_up = STUCK
        self.given_up.append(turn.pipeline.name)


def _pipelines(sandbox: Sandbox, drain: str, reads: dict[str, list[str]]) -> list[Pipeline]:
    made = []
    for name, upstream in reads.items():
        paths = [f"tables/{each}" for each in upstream] or [f"landing/{name}"]
        sources = ", ".join(f"s{n}: {{format: delta, path: {path}}}" for n, path in enumerate(paths))
        spec = (
            f"sources: {{{sources}}}\nsink: {{format: delta, path: tables/{name}, schema: id.ddl}}\n{drain}"
        )
        made.append(sandbox.pipeline(name, spec, transform_sql="SELECT 1", id_ddl="id INT"))
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


@pytest.mark.parametrize("cause", [LookupError("a bug"), SystemExit("a bug")])
def test_what_a_turn_raises_is_its_report_and_takes_none_from_the_others(
    tmp_path: Path, cause: BaseException
) -> None:
    group = Group(tmp_path, bad=[], after=["bad"], other=[])

    def work(turn: PipelineTask) -> None:
        if turn.pipeline.name == "bad":
            raise cause

    group.work = work
    assert sorted(group.take()) == ["after", "bad failed: a bug", "other"]
    assert sorted(group.told) == ["after", "bad failed: a bug", "other"]


@pytest.mark.parametrize("what", ["signs", "give_up", "abandon", "told"])
def test_what_watching_one_turn_raises_takes_no_report_from_the_others(tmp_path: Path, what: str) -> None:
    group = Group(tmp_path, "drain: {stuck_after: 500 milliseconds}", bad=[], other=[])
    let_go, group.grace, met = threading.Event(), 0.1, []

    def raises_for_bad(about: object) -> None:
        if "bad" in str(about):
            met.append(about)
            raise LookupError(what)

    if what == "told":
        group.on_told = raises_for_bad
    else:
        group.on_watch[what] = lambda turn: raises_for_bad(turn.pipeline.name)

    def work(turn: PipelineTask) -> None:
        if turn.pipeline.name == "bad" and what != "told":
            let_go.wait(PATIENCE)
        for _ in range(20):
            turn.note_progress()
            time.sleep(0.05)

    group.work = work
    try:
        said = {
            "signs": "bad left behind",
            "give_up": "bad left behind",
            "abandon": "bad failed: abandon",
            "told": "bad",
        }
        assert group.take() == [said[what], "other"]
        assert met
        assert "other" in group.told
    finally:
        let_go.set()


def test_after_a_stop_no_turn_begins_and_those_under_way_end(tmp_path: Path) -> None:
    group = Group(tmp_path, first=[], second=["first"])
    group.work = lambda turn: group.stop.set()
    assert group.take() == ["first"]
    assert group.log == ["first begins", "first ends"]


def test_a_stuck_turn_is_given_up_and_its_downstream_goes_on(tmp_path: Path) -> None:
    group = Group(tmp_path, "drain: {stuck_after: 500 milliseconds}", stuck=[], after=["stuck"])

    def work(turn: PipelineTask) -> None:
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

    def signs(turn: PipelineTask) -> int:
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

    def work(turn: PipelineTask) -> None:
        with turn.waiting():
            assert slots.take(turn, 1, group.stop)
        assert alone.acquire(blocking=False)
        for _ in range(20):
            turn.note_progress()
            time.sleep(0.05)
        alone.release()
        slots.give_back(turn)

    group.work = work
    assert sorted(group.take()) == ["one", "other"]
    assert group.given_up == []


def test_a_slot_is_not_waited_for_after_a_stop(tmp_path: Path) -> None:
    group = Group(tmp_path, one=[], other=[])
    slots, took = Slots(), list[bool]()

    def work(turn: PipelineTask) -> None:
        took.append(slots.take(turn, 1, group.stop))
        group.stop.set()

    group.work = work
    group.take()
    assert sorted(took) == [False, True]
