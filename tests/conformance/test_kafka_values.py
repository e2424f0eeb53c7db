"""SRC: the values of Kafka records: json, csv, text and Avro."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import pytest

from drawdown.errors import SourceError, SpecError
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.avro import doubling
from tests.support.refusals import refused
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

SPEC = """
sources:
  readings: {{format: kafka, value: {value}, {schema} options: {{subscribe: {topic}}}}}
transform: transform.sql
sink: {{format: delta, path: tables/out, schema: out.ddl}}
state: {{partitions: 2}}
"""
AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "station", "type": ["null", "string"]},
        {"name": "celsius", "type": ["null", "long"]},
    ],
}


def _avro(station: str | None, celsius: int) -> bytes:
    """One record of AVRO: a branch of each union, then the length and bytes, or the number, in zigzag."""
    text = b"\x00" if station is None else bytes([2, 2 * len(station)]) + station.encode()
    return text + bytes([2, 2 * celsius])


# How a reading is written, and a value that cannot be read.
WRITTEN: dict[str, tuple[Callable[[str, int], str | bytes], str | bytes]] = {
    "json": (lambda station, celsius: json.dumps({"station": station, "celsius": celsius}), "{broken"),
    "csv": (lambda station, celsius: f"{station},{celsius}", "EWR,warm"),
    "avro": (_avro, b"\xff\xff\xff"),
}


def _pipeline(sandbox: Sandbox, value: str, topic: Topic, more: str = "") -> None:
    suffix = "avsc" if value == "avro" else "ddl"
    sandbox.pipeline(
        "readings",
        SPEC.format(value=value, schema=f"schema: reading.{suffix}, {more}", topic=topic.name),
        reading_ddl="station STRING, celsius BIGINT",
        reading_avsc=json.dumps(AVRO),
        out_ddl="station STRING, celsius BIGINT, topic STRING",
        transform_sql="SELECT station, celsius, _kafka.topic AS topic FROM readings",
    )


@pytest.mark.sampled
@pytest.mark.conformance("SRC-15")
@pytest.mark.parametrize("value", WRITTEN)
def test_values_become_columns_and_what_cannot_be_read_is_put_aside(
    kafka_sandbox: Sandbox, broker: KafkaServer, value: str
) -> None:
    write, broken = WRITTEN[value]
    topic = Topic(broker, f"src15-{value}")
    _pipeline(kafka_sandbox, value, topic)
    topic.write([write("EWR", 1), broken, write("JFK", 2), None])
    first = kafka_sandbox.run("readings")
    topic.write([write("LGA", 3), broken])
    second = kafka_sandbox.run("readings")
    assert kafka_sandbox.delta("tables/out") == [
        ("EWR", 1, topic.name),
        ("JFK", 2, topic.name),
        ("LGA", 3, topic.name),
    ]
    assert (first.counts.malformed, second.counts.malformed) == (2, 1)
    payload = base64.b64encode(broken).decode() if isinstance(broken, bytes) else broken
    put_aside = [(row["offset"], row["payload"]) for row in kafka_sandbox.quarantined("readings")]
    assert sorted(put_aside) == [(1, payload), (3, None), (5, payload)]


@pytest.mark.full
@pytest.mark.conformance("SRC-15")
def test_text_is_kept_as_it_is(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "src15-string")
    kafka_sandbox.pipeline(
        "readings",
        SPEC.format(value="string", schema="", topic=topic.name),
        out_ddl="key STRING, value STRING",
        transform_sql="SELECT key, value FROM readings",
    )
    topic.write(["{broken", "a,b"], key="k")
    kafka_sandbox.run("readings")
    topic.write(["", "ü"])
    kafka_sandbox.run("readings")
    assert kafka_sandbox.delta("tables/out") == [
        (None, ""),
        (None, "ü"),
        ("k", "a,b"),
        ("k", "{broken"),
    ]


@pytest.mark.full
@pytest.mark.conformance("SRC-15")
def test_an_avro_record_of_nulls_is_no_broken_one_and_a_broken_one_can_end_the_run(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "src15-avro-fails")
    _pipeline(kafka_sandbox, "avro", topic, "malformed: fail,")
    topic.write([b"\x00\x00", _avro("EWR", 1)])
    kafka_sandbox.run("readings")
    topic.write([WRITTEN["avro"][1]])
    error = kafka_sandbox.drain("readings")[0].error
    assert isinstance(error, SourceError)
    assert error.id == "source.malformed"
    assert kafka_sandbox.delta("tables/out") == [
        ("EWR", 1, topic.name),
        (None, None, topic.name),
    ]


@pytest.mark.conformance("SRC-15")
def test_a_file_that_is_no_avro_schema_is_refused(kafka_sandbox: Sandbox, broker: KafkaServer) -> None:
    topic = Topic(broker, "src15-no-schema")
    _pipeline(kafka_sandbox, "avro", topic)
    topic.write([_avro("EWR", 1)])
    (kafka_sandbox.root / "include/pipelines/readings/reading.avsc").write_text('{"type": "string"}')
    error = refused(kafka_sandbox, "readings", "schema.unreadable", SpecError)
    assert "no record with fields" in error.what


@pytest.mark.conformance("SRC-15")
def test_a_schema_that_doubles_is_refused_and_a_record_takes_no_more_memory_than_it_has(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "src15-large")
    _pipeline(kafka_sandbox, "avro", topic)
    # The length of its text is 1.9 GB, which once ended the driver.
    topic.write([_avro("EWR", 1), b"\x02" + bytes.fromhex("80ccfd930e")])
    assert kafka_sandbox.run("readings").counts.malformed == 1
    assert kafka_sandbox.delta("tables/out") == [("EWR", 1, topic.name)]
    topic.write([_avro("JFK", 2)])
    (kafka_sandbox.root / "include/pipelines/readings/reading.avsc").write_text(doubling(60))
    error = refused(kafka_sandbox, "readings", "schema.unreadable", SpecError)
    assert "more than 10,000 fields" in error.what
