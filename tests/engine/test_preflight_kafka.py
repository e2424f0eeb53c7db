"""The preflight against topics that Spark itself has read; the rule is that of test_preflight.py."""

from __future__ import annotations

import time
from datetime import datetime
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from drawdown.errors import SourceError, SpecError
from drawdown.plan.preflight import Preflight
from drawdown.scaffold.topic import read_topic
from drawdown.spec.connections.broker_options import spark_options
from drawdown.testing.servers.kafka import KafkaServer
from tests.support.plain_drain import Flights
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

_TOPIC_NUMBERS = count(1)
KAFKA = """
    sources:
      left: {{format: kafka, value: string, options: {{{topics}, startingOffsets: {start}}}}}
    transform: transform.sql
    sink: {{format: delta, path: tables/out, schema: out.ddl, mode: append, publish: audited}}
"""


@pytest.fixture
def topic(broker: KafkaServer) -> Topic:
    return Topic(broker, f"topic-{next(_TOPIC_NUMBERS):03}-x", 2)


def produce(topic: Topic, *values: str) -> None:
    """In turn to the first and the second partition."""
    for number, value in enumerate(values):
        topic.write([value], partition=number % 2)


def kafka_flights(sandbox: Sandbox, topics: str, start: str = "earliest") -> Flights:
    return Flights(sandbox, KAFKA.format(topics=topics, start=start))


def drain_topic(flights: Flights, **options: str) -> None:
    spark = flights.sandbox.spark
    assert spark is not None
    reader = (
        spark.readStream.format("kafka")
        .options(**spark_options(flights.sandbox.project.brokers["default"]))
        .options(**{"kafka.isolation.level": "read_committed", "startingOffsets": "earliest"})
        .options(**options)
    )
    flights.drain(reader.load())


def test_offsets_behind_the_checkpoint_are_work(kafka_sandbox: Sandbox, topic: Topic) -> None:
    flights = kafka_flights(kafka_sandbox, f"subscribe: {topic.name}")
    assert flights.look() == Preflight(False, [], {"left": {"offsets": {topic.name: 0}}})
    produce(topic, "a", "b", "c")
    assert flights.look().backlog["left"]["offsets"] == {topic.name: 3}
    drain_topic(flights, subscribe=topic.name)
    assert flights.look() == Preflight(False, [], {"left": {"offsets": {topic.name: 0}}})
    produce(topic, "d")
    found = flights.look()
    assert (found.work, found.reasons) == (True, [f"source left: 1 new offset in topic {topic.name}"])


def test_a_backlog_says_since_when_it_waits_and_how_long_the_broker_keeps_it(
    kafka_sandbox: Sandbox, broker: KafkaServer, topic: Topic
) -> None:
    flights = kafka_flights(kafka_sandbox, f"subscribe: {topic.name}")
    now_ms = int(time.time() * 1_000)
    topic.write(["young"], at_ms=now_ms - 60_000)
    topic.write(["old", "younger"], partition=1, at_ms=now_ms - 600_000)
    topic.configure({"retention.ms": "3600000"})
    seen = flights.look().backlog["left"]
    since_ms = datetime.fromisoformat(seen["oldest"]).timestamp() * 1_000
    assert since_ms == pytest.approx(now_ms - 600_000, abs=1)
    assert seen["headroom"] == pytest.approx(3_000, abs=60)
    for unlimited in ({"retention.ms": "-1"}, {"cleanup.policy": "compact"}):
        topic.configure(unlimited)
        seen = flights.look().backlog["left"]
        assert "oldest" in seen
        assert "headroom" not in seen
    drain_topic(flights, subscribe=topic.name)
    assert flights.look().backlog == {"left": {"offsets": {topic.name: 0}}}, "nothing waits, nothing is asked"


def test_a_new_partition_is_work_until_it_is_in_the_checkpoint(kafka_sandbox: Sandbox, topic: Topic) -> None:
    flights = kafka_flights(kafka_sandbox, f"subscribe: {topic.name}")
    produce(topic, "a", "b")
    drain_topic(flights, subscribe=topic.name)
    topic.grow(3)
    assert flights.look().reasons == [f"source left: partition 2 of topic {topic.name} is new"]
    drain_topic(flights, subscribe=topic.name)
    assert not flights.look().work


@pytest.mark.parametrize("way", ["subscribePattern", "assign"])
def test_patterns_and_assigned_partitions_are_followed(
    kafka_sandbox: Sandbox, topic: Topic, way: str
) -> None:
    value = f"{topic.name[:-1]}." if way == "subscribePattern" else f'{{"{topic.name}": [1]}}'
    flights = kafka_flights(kafka_sandbox, f"{way}: '{value}'")
    produce(topic, "a", "b", "c")
    expected = 3 if way == "subscribePattern" else 1
    assert flights.look().backlog["left"]["offsets"] == {topic.name: expected}
    drain_topic(flights, **{way: value})
    assert not flights.look().work


def test_records_of_an_open_transaction_are_not_there_yet(
    kafka_sandbox: Sandbox, broker: KafkaServer, topic: Topic
) -> None:
    flights = kafka_flights(kafka_sandbox, f"subscribe: {topic.name}")
    produce(topic, "a")
    drain_topic(flights, subscribe=topic.name)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "open"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic.name, "b", partition=0)
    producer.flush(10)
    assert not flights.look().work
    producer.commit_transaction(10)
    # The commit returns before the broker has written the marker that moves the partition's end.
    deadline = time.monotonic() + 20
    while not flights.look().work:
        assert time.monotonic() < deadline
    drain_topic(flights, subscribe=topic.name)
    assert not flights.look().work


def test_a_topic_that_was_made_anew_is_left_for_the_drain(kafka_sandbox: Sandbox, topic: Topic) -> None:
    flights = kafka_flights(kafka_sandbox, f"subscribe: {topic.name}")
    produce(topic, "a", "b", "c")
    drain_topic(flights, subscribe=topic.name)
    topic.delete()
    assert flights.look().work
    topic.create()
    assert any("is gone" in reason for reason in flights.look().reasons)
    assert any(
        "recreated after it had been read up to offset 2" in reason for reason in flights.look().reasons
    )


def test_a_topic_made_again_with_as_many_offsets_is_told_by_its_id(
    kafka_sandbox: Sandbox, broker: KafkaServer
) -> None:
    topic = Topic(broker, "as-many")
    flights = kafka_flights(kafka_sandbox, "subscribe: as-many")
    flights.metastore.release(flights.lease)
    folder = flights.sandbox.root / "include/pipelines/flights"
    (folder / "transform.sql").write_text("select value from left")
    topic.write(["a", "b"])
    flights.sandbox.run("flights")
    assert not flights.look().work
    topic.make_again()
    topic.write(["c", "d"])
    (reason,) = flights.look().reasons
    assert "topic as-many was recreated after it had been read up to offset 2" in reason
    with pytest.raises(SourceError, match=r"source\.data-lost"):
        flights.sandbox.run("flights")

    # With the loss accepted, a drain would find nothing to read, and note nothing: no run is worth it.
    spec = folder / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("earliest}", "earliest, failOnDataLoss: false}"))
    assert flights.look().reasons == []
    topic.write(["e"])
    assert flights.sandbox.run("flights").counts.lost == 2
    assert not flights.look().work


@pytest.mark.parametrize("way", ["subscribe: {topic}", "assign: '{{\"{topic}\": [0]}}'"])
def test_looking_for_a_topic_that_is_not_there_does_not_create_it(
    kafka_sandbox: Sandbox, broker: KafkaServer, way: str
) -> None:
    flights = kafka_flights(kafka_sandbox, way.format(topic="nowhere"))
    assert flights.look().reasons == ["source left: topic nowhere does not exist"]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert "nowhere" not in admin.list_topics(timeout=5).topics


def test_the_first_run_on_latest_offsets_is_work_because_it_fixes_them(
    kafka_sandbox: Sandbox, topic: Topic
) -> None:
    flights = kafka_flights(kafka_sandbox, f"subscribe: {topic.name}", start="latest")
    assert flights.look().reasons == ["source left: the first run fixes where reading of the topics starts"]


def test_a_broker_that_is_not_there_is_a_doubt_within_seconds(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    flights = Flights(
        Sandbox(tmp_path / "p", kafka="127.0.0.1:1"), KAFKA.format(topics="subscribe: t", start="earliest")
    )
    started = time.monotonic()
    found = flights.look()
    assert time.monotonic() - started < 30
    assert found.work
    assert found.reasons[0].startswith("source left: Kafka at 127.0.0.1:1 does not answer")
    assert capfd.readouterr().err == ""


def test_a_new_pipeline_is_inferred_from_the_records_of_a_topic(kafka_sandbox: Sandbox, topic: Topic) -> None:
    project = kafka_sandbox.project
    with pytest.raises(SpecError) as empty:
        read_topic(project, topic.name)
    assert empty.value.id == "init.sample-empty"
    produce(topic, '{"id": 1, "at": "2024-01-01T10:00:00Z"}', '{"id": 2, "price": 2.5}')
    found = read_topic(project, topic.name)
    types = {column.name: column.type for column in found.columns}
    assert types == {"id": "BIGINT", "at": "TIMESTAMP", "price": "DOUBLE"}
    assert len(found.records) == 2
    with pytest.raises(SpecError) as missing:
        read_topic(project, "no-such-topic")
    assert missing.value.id == "init.no-topic"
    with pytest.raises(SpecError) as unknown:
        read_topic(project, topic.name, "no_such_broker")
    assert unknown.value.id == "init.no-broker"
