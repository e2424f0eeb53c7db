"""The preflight against topics that Spark itself has read; the rule is that of test_preflight.py."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import SparkSession

from drawdown.errors import SourceError
from drawdown.plan.preflight import Preflight
from drawdown.spec.connections.broker_options import spark_options
from drawdown.testing.servers.kafka import KafkaServer as LocalBroker
from tests.support.plain_drain import Flights
from tests.support.sandbox import Sandbox
from tests.support.topics import Topic

STATE_DIR = Path(__file__).parents[2] / ".drawdown"
_TOPIC_NUMBERS = count(1)
KAFKA = """
    sources:
      left: {{format: kafka, value: string, options: {{{topics}, startingOffsets: {start}}}}}
    transform: transform.sql
    sink: {{format: delta, path: tables/out, schema: out.ddl, mode: append, publish: audited}}
"""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(tmp_path_factory.mktemp("broker") / "kafka", state_dir=STATE_DIR) as running:
        yield running


@pytest.fixture
def topic(broker: LocalBroker) -> str:
    name = f"topic-{next(_TOPIC_NUMBERS):03}-x"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 2)])[name].result()
    return name


def produce(broker: LocalBroker, topic: str, *values: str, transaction: str | None = None) -> Producer:
    config = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer({**config, "transactional.id": transaction} if transaction else config)
    if transaction:
        producer.init_transactions(10)
        producer.begin_transaction()
    for number, value in enumerate(values):
        producer.produce(topic, value=value, partition=number % 2)
    producer.flush(10)
    return producer


def create_when_gone(admin: AdminClient, topic: str) -> None:
    """Make a topic whose deletion may still be under way."""
    deadline = time.monotonic() + 30
    while True:
        try:
            admin.create_topics([NewTopic(topic, 1)])[topic].result()
            return
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def kafka_flights(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topics: str, start: str = "earliest"
) -> Flights:
    sandbox = Sandbox(tmp_path / "kafka-project", spark, broker.bootstrap_servers)
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


def test_offsets_behind_the_checkpoint_are_work(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topic: str
) -> None:
    flights = kafka_flights(tmp_path, spark, broker, f"subscribe: {topic}")
    assert flights.look() == Preflight(False, [], {"left": {"offsets": {topic: 0}}})
    produce(broker, topic, "a", "b", "c")
    assert flights.look().backlog == {"left": {"offsets": {topic: 3}}}
    drain_topic(flights, subscribe=topic)
    assert flights.look() == Preflight(False, [], {"left": {"offsets": {topic: 0}}})
    produce(broker, topic, "d")
    found = flights.look()
    assert (found.work, found.reasons) == (True, [f"left: 1 new offset(s) in topic {topic}"])


def test_a_new_partition_is_work_until_it_is_in_the_checkpoint(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topic: str
) -> None:
    flights = kafka_flights(tmp_path, spark, broker, f"subscribe: {topic}")
    produce(broker, topic, "a", "b")
    drain_topic(flights, subscribe=topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
    assert flights.look().reasons == [f"left: partition 2 of topic {topic} is new"]
    drain_topic(flights, subscribe=topic)
    assert not flights.look().work


@pytest.mark.parametrize("way", ["subscribePattern", "assign"])
def test_patterns_and_assigned_partitions_are_followed(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topic: str, way: str
) -> None:
    value = f"{topic[:-1]}." if way == "subscribePattern" else f'{{"{topic}": [1]}}'
    flights = kafka_flights(tmp_path, spark, broker, f"{way}: '{value}'")
    produce(broker, topic, "a", "b", "c")
    expected = 3 if way == "subscribePattern" else 1
    assert flights.look().backlog == {"left": {"offsets": {topic: expected}}}
    drain_topic(flights, **{way: value})
    assert not flights.look().work


def test_records_of_an_open_transaction_are_not_there_yet(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topic: str
) -> None:
    flights = kafka_flights(tmp_path, spark, broker, f"subscribe: {topic}")
    produce(broker, topic, "a")
    drain_topic(flights, subscribe=topic)
    producer = produce(broker, topic, "b", transaction=topic)
    assert not flights.look().work
    producer.commit_transaction(10)
    # The commit returns before the broker has written the marker that moves the partition's end.
    deadline = time.monotonic() + 20
    while not flights.look().work:
        assert time.monotonic() < deadline
    drain_topic(flights, subscribe=topic)
    assert not flights.look().work


def test_a_topic_that_was_made_anew_is_left_for_the_drain(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topic: str
) -> None:
    flights = kafka_flights(tmp_path, spark, broker, f"subscribe: {topic}")
    produce(broker, topic, "a", "b", "c")
    drain_topic(flights, subscribe=topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([topic])[topic].result()
    assert flights.look().work
    create_when_gone(admin, topic)
    assert any("is gone" in reason for reason in flights.look().reasons)
    assert any(
        "made again after it had been read up to offset 2" in reason for reason in flights.look().reasons
    )


def test_a_topic_made_again_with_as_many_offsets_is_told_by_its_id(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker
) -> None:
    topic = Topic(broker, "as-many")
    flights = kafka_flights(tmp_path, spark, broker, "subscribe: as-many")
    flights.metastore.release(flights.lease)
    folder = flights.sandbox.root / "include/pipelines/flights"
    (folder / "transform.sql").write_text("select value from left")
    topic.write(["a", "b"])
    flights.sandbox.run("flights")
    assert not flights.look().work
    topic.make_again()
    topic.write(["c", "d"])
    (reason,) = flights.look().reasons
    assert "topic as-many was made again after it had been read up to offset 2" in reason
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
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, way: str
) -> None:
    flights = kafka_flights(tmp_path, spark, broker, way.format(topic="nowhere"))
    assert flights.look().reasons == ["left: there is no topic nowhere"]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert "nowhere" not in admin.list_topics(timeout=5).topics


def test_the_first_run_on_latest_offsets_is_work_because_it_fixes_them(
    tmp_path: Path, spark: SparkSession, broker: LocalBroker, topic: str
) -> None:
    flights = kafka_flights(tmp_path, spark, broker, f"subscribe: {topic}", start="latest")
    assert flights.look().reasons == ["left: the first run fixes where reading of the topics starts"]


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
    assert found.reasons[0].startswith("left: Kafka at 127.0.0.1:1 does not answer")
    assert capfd.readouterr().err == ""
