"""Fixtures of the faults tier: a real broker that may be stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.machine.broker import Broker
from drawdown.machine.ports import free_ports
from tests.support.spark import ROOT
from tests.support.workspace import Workspace


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Its port stays the same when it starts again."""
    [port] = free_ports(1)
    with Broker(tmp_path_factory.mktemp("kafka"), port, state_dir=ROOT / ".drawdown") as running:
        yield running


@pytest.fixture
def kafka_workspace(tmp_path: Path, spark: SparkSession, broker: Broker) -> Workspace:
    return Workspace(tmp_path / "project", spark, kafka=broker.bootstrap_servers)
