"""Loading 1,000 pipelines stays under 2 seconds. Run with: pytest -m benchmark tests/benchmarks"""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from drawdown.spec import load_pipelines
from tests.support.spec_folders import PIPELINE, QUALITY, SpecFolders

PIPELINES = 1000
SECONDS = 2.0


@pytest.mark.benchmark
def test_a_thousand_pipelines_load_in_time(tmp_path: Path, benchmark: BenchmarkFixture) -> None:
    folders = SpecFolders(tmp_path)
    for number in range(PIPELINES):
        schedule = f'"{number % 60} {number % 24} * * *"'
        folders.add(f"pipeline_{number:04}", PIPELINE.replace('"5 * * * *"', schedule), QUALITY)
    project = folders.project
    loaded = benchmark.pedantic(load_pipelines, (project,), rounds=5, warmup_rounds=1)
    assert len(loaded) == PIPELINES
    # The fastest round: whatever else the machine does can only add to the others.
    assert benchmark.stats.stats.min < SECONDS
