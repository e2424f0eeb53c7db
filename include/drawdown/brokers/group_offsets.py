"""Commits offsets to a consumer group, as a consumer that had read up to them would."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from drawdown.brokers.client import client_config
from drawdown.brokers.offsets import Partition
from drawdown.spec import Broker

SECONDS = 1.5
"""How long a commit may take, with finding the group's coordinator: a run waits for it."""
_PAUSE = 0.1
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR of Kafka's protocol.
_COORDINATOR_MOVES = (14, 15, 16)


def commit_group_offsets(broker: Broker, group: str, offsets: Mapping[Partition, int]) -> None:
    """Set the offsets of a group; partitions that are not named keep theirs.

    The broker refuses it while a consumer is a member of the group.

    Raises:
        KafkaException: the broker does not answer within SECONDS, or refuses it.
        TimeoutError: the client itself does not end.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # Kept in a variable: without its client a future never ends.
    client = AdminClient(client_config(broker))
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return _commit(client, group, offsets, max(deadline - time.monotonic(), _PAUSE))
        except KafkaException as cause:
            # A group that is new, or that has just moved to another broker.
            if cause.args[0].code() not in _COORDINATOR_MOVES or time.monotonic() + _PAUSE > deadline:
                raise
        time.sleep(_PAUSE)


def _commit(client: Any, group: str, offsets: Mapping[Partition, int], seconds: float) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

    wanted = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
    answers = client.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=seconds
    )
    for each in answers[group].result(seconds + 0.5).topic_partitions:
        if each.error is not None:
            raise KafkaException(each.error)
