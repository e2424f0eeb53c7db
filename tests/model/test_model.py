"""Rules in any order over real tables, a real metastore and a warm session, against a model in plain Python.

`make test` takes a few dozen steps of a fixed seed over each sink, `make test-all` thousands. MODEL_SEED=N,
MODEL_GO=M go the way of a finding again; MODEL_WITHOUT=not-utf8 leaves out kinds of rows, of pipelines and
rules.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.model.machine import Machine, told
from tests.model.scenarios import SCENARIOS, Scenario
from tests.model.sinks import Servers
from tests.model.world import World, play

_STEPS = 20
SINKS = ("delta", "postgres", "kafka", "parquet")


def _search(
    spark: SparkSession,
    above: Path,
    goes: Sequence[str],
    number: int,
    store: Callable[[], str],
    servers: Servers,
) -> None:
    """Raises AssertionError with all that was found: each go ends with the first that it finds."""
    only = os.environ.get("MODEL_GO")
    found, taken, ends = [], 0, Counter[str]()
    for go, sink in enumerate(goes):
        if only and go != int(only):
            continue
        machine = Machine(above / f"go-{go}", spark, f"{number}/{go}", store(), servers.sink(sink))
        machine.run(_STEPS)
        taken += machine.taken
        ends += machine.world.ends
        print(f"MODEL_SEED={number} MODEL_GO={go} {machine.found or machine}\n", flush=True)
        if machine.found:
            found.append(f"MODEL_SEED={number} MODEL_GO={go} {machine.found}")
        shutil.rmtree(above / f"go-{go}")
    print(f"MODEL_SEED={number}: {taken} steps, {len(found)} findings\n{told(ends)}", flush=True)
    assert not found, "\n\n".join(found)


def _sqlite() -> str:
    return "sqlite:///metastore.db"


def _number(default: int | None = None) -> int:
    given = os.environ.get("MODEL_SEED")
    if given:
        return int(given)
    return default if default is not None else random.randrange(10_000)


@pytest.fixture
def servers(request: pytest.FixtureRequest) -> Servers:
    return Servers(
        lambda: request.getfixturevalue("postgres_server"), lambda: request.getfixturevalue("broker")
    )


@pytest.mark.capability("OWN-13")
@pytest.mark.capability("RIGHT-09")
def test_some_steps(tmp_path: Path, spark: SparkSession, servers: Servers) -> None:
    _search(spark, tmp_path, SINKS, _number(1), _sqlite, servers)


@pytest.mark.full
@pytest.mark.capability("RIGHT-09")
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize(("metastore", "goes"), [("sqlite", 55), ("postgresql", 8)])
def test_many_steps(
    metastore: str, goes: int, sink: str, tmp_path: Path, spark: SparkSession, servers: Servers,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    store = _sqlite
    if metastore == "postgresql":
        store = request.getfixturevalue("postgres_server").create_database
    goes = int(os.environ.get("MODEL_EXAMPLES", goes))
    _search(spark, tmp_path, (sink,) * goes, _number(), store, servers)


def _plays(scenario: Scenario, root: Path, spark: SparkSession) -> None:
    world = World(root, spark, scenario.kind)
    try:
        play(world, scenario.steps)
    finally:
        print("\n".join(world.done))


@pytest.mark.capability("OWN-13")
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each, marks=[] if each.quick else pytest.mark.full, id=str(each)) for each in SCENARIOS],
)
def test_scenario(scenario: Scenario, tmp_path: Path, spark: SparkSession) -> None:
    _plays(scenario, tmp_path / "project", spark)
