"""A Kafka record that comes back from the quarantine is the record that came: key, headers, place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from drawdown.machine.broker import Broker
from tests.support.set_aside import replay
from tests.support.spark import ROOT
from tests.support.workspace import Workspace

SPEC = """
sources:
  readings:
    format: kafka
    value: json
    schema: reading.ddl
    options: {subscribe: hourly, includeHeaders: true}
    watermark: {column: at, delay: 1 hour}
transform: transform.sql
sink: {format: delta, path: tables/readings, schema: out.ddl}
state: {partitions: 2}
"""
FILES = {
    "reading_ddl": "station STRING, celsius DOUBLE, at TIMESTAMP",
    "out_ddl": "station STRING, celsius DOUBLE, at TIMESTAMP, key STRING, header STRING, offset BIGINT",
    "transform_sql": """SELECT station, celsius, at, _kafka.key AS key,
        string(_kafka.headers[0].value) AS header, _kafka.offset AS offset FROM readings""",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("kafka"), state_dir=ROOT / ".drawdown") as running:
        yield running


def test_a_record_comes_back_whole(tmp_path: Path, spark: SparkSession, broker: Broker) -> None:
    workspace = Workspace(tmp_path / "project", spark, kafka=broker.bootstrap_servers)
    workspace.pipeline(
        "hourly", SPEC, **FILES, quality_yaml="rules: [{name: warm, check: celsius > 0, on_fail: quarantine}]"
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    times = "2024-01-01T10:00:00.123456Z"
    for celsius in ("1.5", "-2.5", '"cold"'):
        value = f'{{"station": "EWR", "celsius": {celsius}, "at": {json.dumps(times)}}}'
        producer.produce("hourly", value=value, key="k", headers={"h": "v"})
    assert producer.flush(30) == 0
    run = workspace.run("hourly")
    assert (run.counts.fed, run.counts.quarantined, run.counts.malformed) == (1, 1, 1)
    workspace.pipeline("hourly", SPEC, **FILES, quality_yaml="rules: []")
    run = replay(workspace, patch=("celsius = coalesce(try_cast(celsius as double), -9)",))
    assert run.counts.replayed == 2
    rows = [(*row[:2], f"{row[2]:%M:%S.%f}", *row[3:]) for row in workspace.delta("tables/readings")]
    assert rows == [
        ("EWR", -2.5, "00:00.123456", "k", "v", 1),
        ("EWR", -9.0, "00:00.123456", None, None, 2),
        ("EWR", 1.5, "00:00.123456", "k", "v", 0),
    ]
