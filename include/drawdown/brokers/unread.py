"""When the first unread records of topics were written, and how long the broker keeps them: a short look.

Nothing here is worth waiting for: what does not answer within SECONDS is left out. The broker keeps no
position of this reader: it joins no group and commits nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from drawdown.brokers.client import client_config
from drawdown.brokers.offsets import Partition
from drawdown.spec import Broker

SECONDS = 2.0
"""For both looks at one source together, as long as the broker answers at all."""
_SMALL = 4_096
"""Bytes asked of each partition; the broker sends one batch of records if that is larger."""


def first_unread(
    broker: Broker, starts: Mapping[Partition, int], isolation: str, seconds: float = SECONDS
) -> dict[Partition, int]:
    """Return when the first record at or after each offset was written, in milliseconds since 1970 UTC.

    Args:
        isolation: `read_committed` or `read_uncommitted`.
    """
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, TopicPartition

    consumer = Consumer(
        {
            **client_config(broker),
            # The client wants a name; without a subscription or a commit the broker never hears it.
            "group.id": "drawdown-look",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "isolation.level": isolation,
            "fetch.message.max.bytes": _SMALL,
            "queued.min.messages": 1,
            # Else a second passes before the next partitions are asked.
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 100,
        }
    )
    found: dict[Partition, int] = {}
    deadline = time.monotonic() + seconds
    try:
        consumer.assign([TopicPartition(*where, offset) for where, offset in starts.items()])
        while len(found) < len(starts) and (left := deadline - time.monotonic()) > 0:
            for message in consumer.consume(len(starts), timeout=min(left, 0.2)):
                topic, partition = message.topic(), message.partition()
                if message.error() is not None or topic is None or partition is None:
                    continue
                where = (topic, partition)
                if where in found:
                    continue
                kind, at_ms = message.timestamp()
                found[where] = at_ms if kind != TIMESTAMP_NOT_AVAILABLE else -1
                consumer.pause([TopicPartition(*where)])
    finally:
        consumer.close()
    return {where: at_ms for where, at_ms in found.items() if at_ms >= 0}


def retention_ms(broker: Broker, topics: Iterable[str], seconds: float = SECONDS) -> dict[str, int]:
    """Return for how long the broker keeps records of each topic that loses them by age.

    Topics without a limit are left out, and those whose settings this login may not read.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import (  # type: ignore[attr-defined]
        AdminClient,
        ConfigResource,
        ResourceType,
    )

    asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
    found: dict[str, int] = {}
    if not asked:
        return found
    client = AdminClient(client_config(broker))  # answers come only as long as it lives
    for resource, answer in client.describe_configs(asked, request_timeout=seconds).items():
        with suppress(KafkaException):
            settings: dict[str, Any] = answer.result(seconds)
            limit = int(settings["retention.ms"].value)
            if limit >= 0 and "delete" in settings["cleanup.policy"].value:
                found[resource.name] = limit
    return found
