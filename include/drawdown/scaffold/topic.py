"""The first records of a topic, read without a group: nothing is committed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from drawdown.brokers.client import client_config, no_answer
from drawdown.errors import SpecError
from drawdown.scaffold.sample import Sample, of_records
from drawdown.spec import Project

if TYPE_CHECKING:
    from confluent_kafka import Consumer

RECORDS = 500
_SECONDS = 10.0


def read_topic(project: Project, topic: str, broker_name: str = "default") -> Sample:
    """Up to 500 records of a topic, from the start of each partition.

    Raises:
        SpecError: ``init.no-broker``, ``init.no-topic``, ``init.sample-empty``.
        SourceError: ``source.broker``.
    """
    from confluent_kafka import OFFSET_BEGINNING as START
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    broker = project.brokers.get(broker_name)
    if broker is None:
        raise SpecError(
            "init.no-broker",
            f"project.yaml has no broker {broker_name!r}",
            where="include/project.yaml",
            do=f"add `{broker_name}:` below `brokers:`",
        )
    consumer = Consumer({**client_config(broker), "group.id": "drawdown-init", "enable.auto.commit": False})
    try:
        known = consumer.list_topics(topic, timeout=_SECONDS).topics[topic]
        if known.error is not None:
            raise SpecError(
                "init.no-topic",
                f"the broker has no topic {topic!r}: {known.error.str()}",
                where=broker.bootstrap_servers,
                do="correct the name",
            )
        consumer.assign([TopicPartition(topic, number, START) for number in known.partitions])
        return of_records(_records(consumer), topic)
    except KafkaException as cause:
        raise no_answer(broker, "source.broker", f"topic {topic}", cause) from None
    finally:
        consumer.close()


def _records(consumer: Consumer) -> list[str]:
    found: list[str] = []
    until = time.monotonic() + _SECONDS
    while len(found) < RECORDS and time.monotonic() < until:
        messages = consumer.consume(RECORDS - len(found), timeout=1.0)
        if not messages and found:
            break
        values = (message.value() for message in messages if message.error() is None)
        found += [value.decode("utf-8", errors="replace") for value in values if value is not None]
    return found
