"""Fixtures of the faults tier: a real broker that may be stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from drawdown.processes.ports import free_ports
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """Its port stays the same when it starts again."""
    [port] = free_ports(1)
    with KafkaServer(tmp_path_factory.mktemp("kafka"), port, state_dir=ROOT / ".drawdown") as running:
        yield running


@pytest.fixture
def kafka_sandbox(tmp_path: Path, spark: SparkSession, broker: KafkaServer) -> Sandbox:
    return Sandbox(tmp_path / "project", spark, kafka=broker.bootstrap_servers)
