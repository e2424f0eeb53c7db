"""Kafka JSON → Delta from a real broker: offsets, malformed records, tombstones, aborted transactions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from drawdown.errors import SourceError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

SPEC = """
sources:
  readings:
    format: kafka
    value: json
    schema: reading.ddl
    options: {subscribe: readings}
    watermark: {column: at, delay: 1 hour, max_future: 1 day}
transform: transform.sql
sink: {format: delta, path: tables/readings, schema: out.ddl, publish: audited}
state: {partitions: 2}
"""
FILES = {
    "reading_ddl": "station STRING, celsius DOUBLE, at TIMESTAMP",
    "out_ddl": "station STRING, celsius DOUBLE, topic STRING",
    "transform_sql": "SELECT station, celsius, _kafka.topic AS topic FROM readings",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    with KafkaServer(tmp_path_factory.mktemp("kafka"), state_dir=ROOT / ".drawdown") as running:
        yield running


@pytest.fixture
def kafka_sandbox(tmp_path: Path, spark: SparkSession, broker: KafkaServer) -> Sandbox:
    return Sandbox(tmp_path / "project", spark, kafka=broker.bootstrap_servers)


def _produce(broker: KafkaServer, topic: str, values: list[str | None]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce(topic, value=value, key="k")
    assert producer.flush(30) == 0


def _reading(station: str, celsius: float) -> str:
    return json.dumps({"station": station, "celsius": celsius, "at": "2024-01-01T10:00:00Z"})


def test_offsets_go_on_and_every_record_is_accounted_for(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    kafka_sandbox.pipeline("readings", SPEC, **FILES)
    _produce(broker, "readings", [_reading("EWR", 1.0), "{broken", None, _reading("JFK", 2.0)])
    first = kafka_sandbox.run("readings")
    assert (first.counts.read, first.counts.malformed, first.counts.fed) == (4, 2, 2)
    rejected = kafka_sandbox.quarantined("readings")
    assert [row["payload"] for row in rejected if row["payload"]] == ["{broken"]
    assert {(row["topic"], row["offset"]) for row in rejected} == {("readings", 1), ("readings", 2)}

    assert kafka_sandbox.drain("readings")[0].run is None, "nothing new starts no run"

    _produce(broker, "readings", [_reading("LGA", 3.0)])
    second = kafka_sandbox.run("readings")
    assert second.counts.read == 1
    assert kafka_sandbox.delta("tables/readings") == [
        ("EWR", 1.0, "readings"),
        ("JFK", 2.0, "readings"),
        ("LGA", 3.0, "readings"),
    ]


def test_aborted_transactions_are_not_data(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    kafka_sandbox.pipeline("paid", SPEC.replace("readings}", "paid}"), **FILES)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t1"})
    producer.init_transactions(30)
    for station, commit in (("GOOD", True), ("ABORTED", False)):
        producer.begin_transaction()
        producer.produce("paid", _reading(station, 1.0))
        producer.flush(30)
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    run = kafka_sandbox.run("paid")
    assert run.counts.read == 1
    assert [row[0] for row in kafka_sandbox.delta("tables/readings")] == ["GOOD"]


def test_a_broker_that_is_not_there_is_one_clear_error(sandbox: Sandbox) -> None:
    sandbox.pipeline("readings", SPEC, **FILES)
    before = sandbox.snapshot()
    with pytest.raises(SourceError) as failed:
        sandbox.run("readings")
    assert failed.value.id == "source.broker"
    assert "localhost:1" in str(failed.value)
    assert sandbox.snapshot() == before
