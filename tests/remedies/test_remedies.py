"""For every error id: its state is made, the commands of its `do:` are typed as printed, and runs go on."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import tests.remedies.states  # noqa: F401  registers them
from tests.remedies.ground import Ground
from tests.remedies.registry import STATES, State
from tests.remedies.walker import walk

pytestmark = pytest.mark.capability("RIGHT-07")


@pytest.fixture(scope="module")
def ground(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("remedies") / "project", spark)


@pytest.mark.parametrize(
    "state",
    [pytest.param(each, id=each.name, marks=[pytest.mark.full] * each.full) for each in STATES.values()],
)
def test_the_remedy_leads_on(ground: Ground, state: State) -> None:
    walk(ground, state)
