"""A source's topics on a broker: their partitions, first and next offsets, and ids.

Source (Spark 4.2): org.apache.spark.sql.kafka010.ConsumerStrategy (subscribe, subscribePattern,
assign). The next offsets are requested with the isolation level that the source reads with: at an open
transaction they stay where a committed reader stops.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drawdown.brokers.client import client_config
from drawdown.spec import Broker, Source

# Seconds for all requests to one broker together.
TIMEOUT = 5.0

# As Spark keeps them in a checkpoint: {topic: {partition: next offset}} (KafkaSourceOffset).
Offsets = Mapping[str, Mapping[str, int]]
Partition = tuple[str, int]


@dataclass(frozen=True)
class TopicOffsets:
    """The partitions of a source now.

    Attributes:
        earliest: the first offset that still exists.
        latest: the next offset to be written.
        missing: topics that the source names and that do not exist.
    """

    earliest: Mapping[Partition, int]
    latest: Mapping[Partition, int]
    missing: Sequence[str] = ()


def topic_offsets(broker: Broker, source: Source) -> TopicOffsets:
    """Return every partition that the source reads.

    Raises:
        KafkaException: the broker does not answer within TIMEOUT.
        ValueError, re.error: ``assign`` is not JSON, or ``subscribePattern`` no pattern.
    """
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

    deadline = time.monotonic() + TIMEOUT
    client = AdminClient(client_config(broker))
    given = lower_case_options(source)
    partitions, missing = _partitions(client, given)
    committed_only = given.get("kafka.isolation.level", "read_committed") == "read_committed"
    level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
    bounds: list[dict[Partition, int]] = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
        answers = client.list_offsets(
            {TopicPartition(*partition): spec for partition in partitions},
            isolation_level=level,
            request_timeout=max(deadline - time.monotonic(), 0.5),
        )
        bounds.append({(p.topic, p.partition): answer.result().offset for p, answer in answers.items()})
    return TopicOffsets(bounds[0], bounds[1], missing)


def topic_ids(broker: Broker, topics: Iterable[str]) -> dict[str, str]:
    """Return the id that the broker gave each topic at its creation: a recreated topic has another id.

    Missing topics are left out. Raises KafkaException when the broker does not answer.
    """
    from confluent_kafka import KafkaException, TopicCollection
    from confluent_kafka.admin import AdminClient

    names = sorted(set(topics))
    if not names:
        return {}
    client = AdminClient(client_config(broker))
    found: dict[str, str] = {}
    for name, answer in client.describe_topics(TopicCollection(names), request_timeout=TIMEOUT).items():
        try:
            found[name] = str(answer.result().topic_id)
        except KafkaException as error:
            if error.args[0].code() != _NO_TOPIC:
                raise
    return found


def flat(offsets: Offsets | None) -> dict[Partition, int]:
    """Return offsets of a checkpoint by partition."""
    return {
        (topic, int(number)): offset
        for topic, numbers in (offsets or {}).items()
        for number, offset in numbers.items()
    }


def lower_case_options(source: Source) -> dict[str, Any]:
    """Return the options of a source with names in lower case: Spark ignores the case of names."""
    return {name.lower(): value for name, value in source.options.items()}


def is_lossy(source: Source) -> bool:
    """Whether a source continues without lost records (failOnDataLoss: false; Spark's default is true)."""
    return str(lower_case_options(source).get("failondataloss", True)).lower() == "false"


# UNKNOWN_TOPIC_OR_PARTITION of Kafka's protocol.
_NO_TOPIC = 3


def _partitions(client: Any, options: Mapping[str, Any]) -> tuple[list[Partition], list[str]]:
    """Return the partitions to read, and the named topics that do not exist."""
    # List all topics, never one by name: a broker may create a topic that is requested.
    topics = client.list_topics(timeout=TIMEOUT).topics
    if "assign" in options:
        wanted = dict(json.loads(str(options["assign"])))
    elif "subscribepattern" in options:
        pattern = re.compile(str(options["subscribepattern"]))
        wanted = {name: None for name in topics if pattern.fullmatch(name)}
    else:
        names = [name.strip() for name in str(options["subscribe"]).split(",")]
        wanted = {name: None for name in names if name}
    missing = [name for name in wanted if name not in topics]
    partitions = [
        (name, int(number))
        for name, numbers in wanted.items()
        if name in topics
        for number in (topics[name].partitions if numbers is None else numbers)
        if int(number) in topics[name].partitions
    ]
    return partitions, missing
