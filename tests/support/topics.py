"""Topics of a test's own, on a real broker: written, grown, cut off and made again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, ResourceType

from drawdown.testing.servers.kafka import KafkaServer

_SECONDS = 30.0

Record = tuple[int, str | None, str, list[tuple[str, bytes]] | None]


class Topic:
    """One topic; it is there when the constructor returns."""

    def __init__(self, broker: KafkaServer, name: str, partitions: int = 1) -> None:
        self.name = name
        self._config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": broker.bootstrap_servers,
            # A producer may outlive the broker by a moment: that is no news.
            "log_level": 0,
        }
        self._admin = AdminClient(self._config)
        self.create(partitions)

    def write(
        self,
        values: Iterable[str | bytes | None],
        *,
        partition: int = 0,
        key: str | bytes | None = None,
        headers: dict[str, str] | None = None,
        at_ms: int = 0,
    ) -> None:
        """Append records, in this order. `at_ms`: their timestamp, 0 for now."""
        producer = Producer(self._config)
        for value in values:
            producer.produce(
                self.name, value, key, partition, timestamp=at_ms, headers=list((headers or {}).items())
            )
        assert producer.flush(_SECONDS) == 0

    def write_in_transaction(self, values: Iterable[str], *, commit: bool) -> None:
        """One transaction, committed or aborted."""
        producer = Producer({**self._config, "transactional.id": f"{self.name}-writer"})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        for value in values:
            producer.produce(self.name, value, partition=0)
        producer.flush(_SECONDS)
        producer.commit_transaction(_SECONDS) if commit else producer.abort_transaction(_SECONDS)

    def grow(self, partitions: int) -> None:
        """Add partitions, up to so many."""
        self._admin.create_partitions([NewPartitions(self.name, partitions)])[self.name].result(_SECONDS)
        self._wait_for(partitions)

    def expire(self, before: int, partition: int = 0) -> None:
        """Delete the records before an offset, as the end of their retention does."""
        place = TopicPartition(self.name, partition, before)
        for deleted in self._admin.delete_records([place]).values():
            deleted.result(_SECONDS)

    def configure(self, settings: dict[str, str]) -> None:
        """Give the topic these settings, and the broker's own for all others."""
        asked = ConfigResource(ResourceType.TOPIC, self.name, set_config=settings)
        for done in self._admin.alter_configs([asked]).values():
            done.result(_SECONDS)

    def delete(self) -> None:
        self._admin.delete_topics([self.name])[self.name].result(_SECONDS)
        self._wait_for(0)

    def make_again(self, partitions: int = 1) -> None:
        self.delete()
        self.create(partitions)

    def create(self, partitions: int = 1) -> None:
        """Make the topic, also one whose deletion is still under way."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                self._admin.create_topics([NewTopic(self.name, partitions)])[self.name].result(_SECONDS)
                break
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                    raise
        self._wait_for(partitions)

    def _wait_for(self, partitions: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while True:
            found = self._admin.list_topics(timeout=_SECONDS).topics.get(self.name)
            if (len(found.partitions) if found else 0) == partitions:
                return
            assert time.monotonic() < deadline, f"{self.name} has not {partitions} partition(s)"


def delete_topic(broker: KafkaServer, name: str) -> None:
    """If there is one, as when nobody uses a ledger any more."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    deadline = time.monotonic() + _SECONDS
    while name in admin.list_topics(timeout=_SECONDS).topics:
        assert time.monotonic() < deadline, f"{name} is still there"
        with suppress(KafkaException):
            admin.delete_topics([name])[name].result(_SECONDS)


def records(broker: KafkaServer, topic: str) -> Iterator[Record]:
    """Partition, key, value and headers of each committed record, by partition and offset."""
    reading = {"group.id": "reader", "enable.partition.eof": True, "fetch.wait.max.ms": 10, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **reading})
    try:
        for partition in sorted(consumer.list_topics(topic, timeout=_SECONDS).topics[topic].partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(_SECONDS)
                assert message is not None, f"{topic} does not answer"
                if message.error() is not None:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    break
                key, value = message.key(), message.value()
                assert value is not None
                yield partition, key and key.decode(), value.decode(), message.headers()
    finally:
        consumer.close()
