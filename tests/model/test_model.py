from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.model.scenarios import OPEN, Scenario
from tests.model.world import World, play


@pytest.mark.parametrize("scenario", OPEN, ids=lambda each: f"{each.finding} {each.name}")
def test_what_still_fails(scenario: Scenario, tmp_path: Path, spark: SparkSession) -> None:
    play(World(tmp_path / "project", spark, scenario.kind), scenario.steps)
