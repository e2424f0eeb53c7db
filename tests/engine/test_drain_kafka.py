"""Kafka JSON → Delta from a real broker: offsets, malformed records, tombstones, aborted transactions."""

from __future__ import annotations

import json

import pytest

from drawdown.errors import SourceError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

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


def _reading(station: str, celsius: float) -> str:
    return json.dumps({"station": station, "celsius": celsius, "at": "2024-01-01T10:00:00Z"})


def test_offsets_go_on_and_every_record_is_accounted_for(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    kafka_sandbox.pipeline("readings", SPEC, **FILES)
    topic = Topic(broker, "readings")
    topic.write([_reading("EWR", 1.0), "{broken", None, _reading("JFK", 2.0)], key="k")
    first = kafka_sandbox.run("readings")
    assert (first.counts.read, first.counts.malformed, first.counts.fed) == (4, 2, 2)
    rejected = kafka_sandbox.quarantined("readings")
    assert [row["payload"] for row in rejected if row["payload"]] == ["{broken"]
    assert {(row["topic"], row["offset"]) for row in rejected} == {("readings", 1), ("readings", 2)}

    assert kafka_sandbox.drain("readings")[0].run is None, "nothing new starts no run"

    topic.write([_reading("LGA", 3.0)], key="k")
    second = kafka_sandbox.run("readings")
    assert second.counts.read == 1
    assert kafka_sandbox.delta("tables/readings") == [
        ("EWR", 1.0, "readings"),
        ("JFK", 2.0, "readings"),
        ("LGA", 3.0, "readings"),
    ]


def test_aborted_transactions_are_not_data(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    kafka_sandbox.pipeline("paid", SPEC.replace("readings}", "paid}"), **FILES)
    topic = Topic(broker, "paid")
    topic.write_in_transaction([_reading("GOOD", 1.0)], commit=True)
    topic.write_in_transaction([_reading("ABORTED", 1.0)], commit=False)
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
