"""The records of a topic of notifications, read from where a run stopped, without a consumer group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drawdown.brokers.client import client_config
from drawdown.brokers.offsets import TIMEOUT, topic_ids
from drawdown.spec import Broker

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_AT_ONCE = 10_000
_SILENT_SECONDS = 10.0


class NoTopicError(Exception):
    """The broker has no such topic."""


class SilentError(Exception):
    """The broker stopped sending before the end of the topic."""


@dataclass(frozen=True)
class TopicEnd:
    """A topic now: its id, which a recreated topic does not have, and the offsets of each partition."""

    id: str
    first: Mapping[int, int]
    end: Mapping[int, int]

    def lost(self, since: Mapping[int, int]) -> bool:
        """Whether records behind these offsets are gone, or were never written."""
        return any(
            not self.first.get(number, 0) <= offset <= self.end.get(number, -1)
            for number, offset in {**dict.fromkeys(self.end, 0), **since}.items()
        )


class NotificationTopic:
    """One topic, for the block: ``with NotificationTopic(broker, name) as topic``.

    Raises (from every method):
        KafkaException: the broker does not answer.
    """

    def __init__(self, broker: Broker, name: str) -> None:
        self._broker, self._name = broker, name

    def __enter__(self) -> NotificationTopic:
        from confluent_kafka import Consumer

        self._consumer: Consumer = Consumer(
            {
                **client_config(self._broker),
                "group.id": "drawdown-notifications",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def now(self) -> TopicEnd:
        """Return the topic's id and offsets. Raises NoTopicError."""
        from confluent_kafka import TopicPartition

        # All topics, never one by name: a broker may create a topic that is requested.
        known = self._consumer.list_topics(timeout=TIMEOUT).topics.get(self._name)
        if known is None:
            raise NoTopicError
        bounds = {
            number: self._consumer.get_watermark_offsets(TopicPartition(self._name, number), timeout=TIMEOUT)
            for number in known.partitions
        }
        return TopicEnd(
            topic_ids(self._broker, [self._name]).get(self._name, ""),
            {number: first for number, (first, _) in bounds.items()},
            {number: end for number, (_, end) in bounds.items()},
        )

    def read(self, since: Mapping[int, int], until: Mapping[int, int]) -> Iterator[bytes | None]:
        """Yield the values from some offsets to others. Raises SilentError."""
        from confluent_kafka import TopicPartition

        starts = {n: since.get(n, 0) for n, end in until.items() if since.get(n, 0) < end}
        left = {number: until[number] for number in starts}
        self._consumer.assign([TopicPartition(self._name, n, offset) for n, offset in starts.items()])
        while left:
            messages = self._consumer.consume(_AT_ONCE, timeout=_SILENT_SECONDS)
            if not messages:
                raise SilentError
            for message in messages:
                yield from _value(message, left)


def _value(message: Any, left: dict[int, int]) -> Iterator[bytes | None]:
    """Yield a message's value; take its partition out of those that are left when it was the last."""
    from confluent_kafka import KafkaError, KafkaException

    number, error = message.partition(), message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    if error is None and number in left:
        yield message.value()
    # The end of a partition may be the mark of a transaction, which is no message.
    if error is not None or message.offset() + 1 >= left.get(number, 0):
        left.pop(number, None)
