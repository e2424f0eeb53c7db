"""What waits at a Kafka source: the partitions' ends against the offsets in the checkpoint.

Source (Spark 4.2): org.apache.spark.sql.kafka010.ConsumerStrategy (subscribe, subscribePattern,
assign), KafkaSourceOffset ({topic: {partition: next offset}}), KafkaMicroBatchStream (a new partition
is read from its beginning). The ends are asked for with the isolation level that the source reads
with: behind an open transaction they stay where a committed reader stops.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any

from drawdown.plan.findings import Finding
from drawdown.plan.kafka_client import client_config
from drawdown.spec import Broker, Source

# Seconds for all questions to one broker together.
TIMEOUT = 5.0

Offsets = Mapping[str, Mapping[str, int]]
_Partition = tuple[str, int]


def kafka_backlog(broker: Broker, source: Source, committed: Offsets | None) -> Finding:
    """Records behind the committed offsets (None: no checkpoint yet), per topic.

    A broker that does not answer within TIMEOUT is a reason to run: the drain says what is wrong.
    """
    from confluent_kafka import KafkaException

    options = {name.lower(): value for name, value in source.options.items()}
    if committed is None and not _starts_at_the_beginning(options):
        return Finding(("the first run fixes where reading of the topics starts",))
    try:
        earliest, latest = _bounds(broker, options)
    except KafkaException as error:
        return Finding((f"Kafka at {broker.bootstrap_servers} does not answer: {error.args[0].str()}",))
    except (ValueError, re.error) as error:
        return Finding((f"the topics cannot be read: {error}",))
    return _compare(committed, earliest, latest)


def _starts_at_the_beginning(options: Mapping[str, Any]) -> bool:
    by_time = any(name.startswith(("startingtimestamp", "startingoffsetsby")) for name in options)
    return not by_time and str(options.get("startingoffsets", "earliest")).lower() == "earliest"


def _bounds(
    broker: Broker, options: Mapping[str, Any]
) -> tuple[dict[_Partition, int], dict[_Partition, int]]:
    """First and next offset of every partition that the source reads."""
    from confluent_kafka import IsolationLevel, TopicPartition
    from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

    deadline = time.monotonic() + TIMEOUT
    client = AdminClient(client_config(broker))
    partitions = _partitions(client, options)
    committed_only = options.get("kafka.isolation.level", "read_committed") == "read_committed"
    level = IsolationLevel.READ_COMMITTED if committed_only else IsolationLevel.READ_UNCOMMITTED
    bounds: list[dict[_Partition, int]] = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
        answers = client.list_offsets(
            {TopicPartition(*partition): spec for partition in partitions},
            isolation_level=level,
            request_timeout=max(deadline - time.monotonic(), 0.5),
        )
        bounds.append({(p.topic, p.partition): answer.result().offset for p, answer in answers.items()})
    return bounds[0], bounds[1]


def _partitions(client: Any, options: Mapping[str, Any]) -> list[_Partition]:
    # All topics, never one by name: a broker may create the topic that it is asked for.
    topics = client.list_topics(timeout=TIMEOUT).topics
    if "subscribepattern" in options:
        pattern = re.compile(str(options["subscribepattern"]))
        names = [name for name in topics if pattern.fullmatch(name)]
    elif "subscribe" in options:
        names = [name.strip() for name in str(options["subscribe"]).split(",") if name.strip()]
    elif "assign" in options:
        assigned = json.loads(str(options["assign"]))
        _refuse_missing(assigned, topics)
        return [(topic, int(number)) for topic, numbers in assigned.items() for number in numbers]
    else:
        raise ValueError("none of subscribe, subscribePattern and assign is set")
    _refuse_missing(names, topics)
    return [(name, number) for name in names for number in topics[name].partitions]


def _refuse_missing(names: Iterable[str], topics: Mapping[str, Any]) -> None:
    missing = [name for name in names if name not in topics]
    if missing:
        raise ValueError(f"there is no topic {missing[0]}")


def _compare(
    committed: Offsets | None, earliest: Mapping[_Partition, int], latest: Mapping[_Partition, int]
) -> Finding:
    known = {
        (topic, int(number)): offset
        for topic, numbers in (committed or {}).items()
        for number, offset in numbers.items()
    }
    waiting: dict[str, int] = {}
    for partition, end in latest.items():
        start = max(known.get(partition, 0), earliest[partition])
        waiting[partition[0]] = waiting.get(partition[0], 0) + max(end - start, 0)
    reasons = [f"{count} new offset(s) in topic {topic}" for topic, count in waiting.items() if count]
    if committed is not None:
        reasons += [f"partition {n} of topic {t} is new" for t, n in sorted(latest.keys() - known.keys())]
        reasons += [f"partition {n} of topic {t} is gone" for t, n in sorted(known.keys() - latest.keys())]
        reasons += [
            f"partition {n} of topic {t} ends at {latest[t, n]}, before offset {known[t, n]} that was read"
            for t, n in sorted(known.keys() & latest.keys())
            if latest[t, n] < known[t, n]
        ]
    return Finding(tuple(reasons), {"offsets": waiting})
