"""Rules in any order over real tables, a real metastore and a warm session, against a model in plain Python.

`make test` tries a few dozen steps of a fixed seed, `make test-all` thousands. MODEL_SEED=N goes the way of
N again; MODEL_WITHOUT=not-utf8 leaves out kinds of rows whose findings are known.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyspark.sql import SparkSession

from tests.model.model import KINDS, Kind
from tests.model.scenarios import SCENARIOS, Scenario
from tests.model.world import (
    DEATHS,
    OF_A_REPLAY,
    OF_A_ROLL_BACK,
    OF_A_SWAP,
    OF_THE_QUARANTINE,
    World,
    Wrong,
    play,
)

pytest_plugins = ("tests.fixtures.postgres",)

_STEPS = 20
_HOURS_A_FILE = 8
_SOMETIMES = st.integers(0, 3).map(lambda n: n == 0)
KNOWN = os.environ.get("MODEL_WITHOUT", "").split(",")
"""Kinds of rows and rules that a search leaves out: what they find is known."""


def _maybe(places: tuple[tuple[str, str], ...]) -> st.SearchStrategy[tuple[str, str] | None]:
    return st.one_of(st.none(), st.none(), st.sampled_from(places))


class Machine(RuleBasedStateMachine):
    """Each rule is one of the world's, with what it is given at random."""

    spark: SparkSession
    above: Path
    store: Callable[[], str]
    seed: int

    @initialize(kind=st.sampled_from(("append", "append", "unordered")))
    def begin(self, kind: str) -> None:
        root = Path(tempfile.mkdtemp(dir=self.above)) / "project"
        self.world = World(root, self.spark, kind, type(self).store())
        self.hour = 0

    def _do(self, name: str, *given: Any) -> None:
        try:
            play(self.world, [(name, *given)])
        except Wrong as wrong:
            way = "\n".join(self.world.done)
            raise Wrong(f"MODEL_SEED={self.seed}, {self.world.kind}\n{way}\n{wrong}") from None

    # Rows

    @rule(
        kinds=st.lists(st.sampled_from([k for k in KINDS if k not in KNOWN]), min_size=1, max_size=4),
        places=st.lists(st.integers(0, 11), min_size=4, max_size=4),
    )
    def land(self, kinds: list[Kind], places: list[int]) -> None:
        self.hour += _HOURS_A_FILE
        rows = []
        for kind, place in zip(kinds, places, strict=False):
            rows.append((kind, self.hour - 20 + place if kind == "late" else self.hour + place))
        self._do("land", *rows)

    @precondition(lambda self: not self.world.pending)
    @rule(die=_maybe(DEATHS))
    def drain(self, die: tuple[str, str] | None) -> None:
        self._do("drain", die)

    @precondition(lambda self: not self.world.pending)
    @rule(rows=st.integers(1, 2))
    def land_and_drain(self, rows: int) -> None:
        # Hypothesis tries what is simplest first, over and over: a rule without arguments that costs nothing.
        self.hour += _HOURS_A_FILE
        self._do("land", *(("ok", self.hour), ("bad", self.hour + 1))[:rows])
        self._do("drain")

    # Replays

    @precondition(lambda self: self.hour and not self.world.pending)
    @rule(start=st.integers(0, 10), length=st.sampled_from((6, 24)), die=_maybe(OF_A_REPLAY))
    def backfill(self, start: int, length: int, die: tuple[str, str] | None) -> None:
        start = start * 6 % (self.hour + 6)
        self._do("backfill", start, start + length, die)

    @rule(mended=st.booleans())
    def mend_rule(self, mended: bool) -> None:
        # A batch that was begun is judged by what holds when it ends.
        self._do("mend_rule", mended)

    @precondition(lambda self: not self.world.pending and self.world.model.live.quarantine)
    @rule(die=_maybe((*OF_THE_QUARANTINE, *DEATHS)))
    def replay_quarantine(self, die: tuple[str, str] | None) -> None:
        self._do("replay_quarantine", die)

    @precondition(lambda self: self.world.model.holds and not self.world.pending)
    @rule(choice=st.sampled_from(("release", "discard")))
    def decide(self, choice: str) -> None:
        self._do("decide", choice)

    # Back

    @precondition(lambda self: self.world.clean and not self.world.pending)
    @rule()
    def mark(self) -> None:
        self._do("mark")

    @precondition(lambda self: self.world.marks and self.world.clean and not self.world.pending)
    @rule(number=st.integers(0, 3))
    def rewind(self, number: int) -> None:
        self._do("rewind", number % len(self.world.marks))

    @precondition(
        lambda self: (
            self.world.clean
            and self.world.model.live.batches
            and not self.world.pending
            and not self.world.model.live.queue
        )
    )
    @rule()
    def take_snapshot(self) -> None:
        self._do("take_snapshot")

    @precondition(lambda self: self.world.snapshot is not None and not self.world.pending)
    @rule()
    def restore(self) -> None:
        self._do("restore")

    # Rebuilds

    @precondition(lambda self: self.world.model.live.batches and self.world.clean and not self.world.pending)
    @rule()
    def rebuild(self) -> None:
        self._do("rebuild")

    @precondition(lambda self: self.world.model.shadow is not None and not self.world.pending)
    @rule(die=_maybe(OF_A_SWAP))
    def approve(self, die: tuple[str, str] | None) -> None:
        self._do("approve", die)

    @precondition(lambda self: self.world.model.shadow is not None and not self.world.pending)
    @rule()
    def give_up(self) -> None:
        self._do("give_up")

    @precondition(
        lambda self: (
            self.world.model.before is not None and self.world.model.shadow is None and not self.world.pending
        )
    )
    @rule(die=_maybe(OF_A_ROLL_BACK))
    def roll_back(self, die: tuple[str, str] | None) -> None:
        self._do("roll_back", die)

    @precondition(lambda self: self.world.pending)
    @rule(drains=_SOMETIMES)
    def finish(self, drains: bool) -> None:
        if drains:
            self._do("drain")
        if self.world.pending:
            self._do("finish")

    # Others

    @rule(hours=st.sampled_from((1, 4)))
    def upkeep(self, hours: int) -> None:
        self._do("upkeep", hours)

    @precondition(lambda self: self.world.model.live.decided and not self.world.pending)
    @rule()
    def read_on(self) -> None:
        self._do("read_on")

    @precondition(lambda self: self.world.model.live.batches and not self.world.pending)
    @rule(
        place=st.sampled_from((*OF_A_REPLAY, ("before", "table.commit"))),
        start=st.integers(0, 10),
        data=st.data(),
    )
    def amid_a_replay(self, place: tuple[str, str], start: int, data: st.DataObject) -> None:
        start = start * 6 % (self.hour + 6)
        others: list[tuple[Any, ...]] = [("drain",), ("drain", ("before", "batch.note")), ("read_on",)]
        if self.world.model.shadow is not None:
            others.append(("approve",))
        if self.world.model.holds:
            others += [("decide", "release"), ("decide", "discard")]
        if self.world.model.live.quarantine:
            others.append(("replay_quarantine",))
        other = data.draw(st.sampled_from(others))
        self._do("perhaps_amid", ("backfill", start, start + 24), place, other)

    def teardown(self) -> None:
        if hasattr(self, "world") and not self.world.pending and not self.world.failed:
            self._do("drain")


def _search(spark: SparkSession, above: Path, examples: int, number: int, store: Callable[[], str]) -> None:
    class Here(Machine):
        pass

    Here.spark, Here.above, Here.store, Here.seed = spark, above, staticmethod(store), number
    run_state_machine_as_test(
        seed(number)(Here),
        settings=settings(
            max_examples=examples,
            stateful_step_count=_STEPS,
            deadline=None,
            database=None,
            print_blob=True,
            report_multiple_bugs=False,
            # A step takes a second: what is found is told as it was found.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def _sqlite() -> str:
    return "sqlite:///metastore.db"


def _number(default: int | None = None) -> int:
    given = os.environ.get("MODEL_SEED")
    if given:
        return int(given)
    return default if default is not None else random.randrange(10_000)


def test_some_steps(tmp_path: Path, spark: SparkSession) -> None:
    _search(spark, tmp_path, 3, _number(1), _sqlite)


@pytest.mark.full
def test_many_steps(tmp_path: Path, spark: SparkSession) -> None:
    _search(spark, tmp_path, int(os.environ.get("MODEL_EXAMPLES", "100")), _number(), _sqlite)


@pytest.mark.full
def test_many_steps_with_postgresql(tmp_path: Path, spark: SparkSession, postgres_server: Any) -> None:
    _search(spark, tmp_path, 25, _number(), postgres_server.create_database)


def _plays(scenario: Scenario, root: Path, spark: SparkSession) -> None:
    world = World(root, spark, scenario.kind)
    try:
        play(world, scenario.steps)
    finally:
        print("\n".join(world.done))


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each, marks=[] if each.quick else pytest.mark.full, id=str(each)) for each in SCENARIOS],
)
def test_scenario(scenario: Scenario, tmp_path: Path, spark: SparkSession) -> None:
    _plays(scenario, tmp_path / "project", spark)
