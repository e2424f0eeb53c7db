"""What waits at a Kafka source: the partitions' ends against the offsets in the checkpoint.

Source (Spark 4.2): org.apache.spark.sql.kafka010.KafkaMicroBatchStream (a new partition is read from
its beginning).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from drawdown.plan.findings import Finding
from drawdown.plan.kafka_losses import kafka_losses
from drawdown.plan.kafka_offsets import Offsets, TopicOffsets, flat, lower_case_options, topic_offsets
from drawdown.spec import Broker, Source
from drawdown.spec.kafka_source import trigger_delay


def kafka_backlog(
    broker: Broker, source: Source, committed: Offsets | None, read_at: datetime | None
) -> Finding:
    """Records behind the committed offsets (None: no checkpoint yet), per topic.

    Fewer than minOffsetsPerTrigger wait for more, at most maxTriggerDelay after `read_at`, when the last
    batch was planned. Spark itself forgets with each run when that was, so there the option says little.

    A broker that does not answer within TIMEOUT is a reason to run: the drain says what is wrong.
    """
    from confluent_kafka import KafkaException

    if committed is None and not _starts_at_the_beginning(lower_case_options(source)):
        return Finding(("the first run fixes where reading of the topics starts",))
    try:
        found = topic_offsets(broker, source)
    except KafkaException as error:
        return Finding((f"Kafka at {broker.bootstrap_servers} does not answer: {error.args[0].str()}",))
    except (ValueError, re.error) as error:
        return Finding((f"the topics cannot be read: {error}",))
    finding = _compare(committed, found)
    return Finding((), finding.backlog) if _may_wait(source, finding, read_at) else finding


def _may_wait(source: Source, finding: Finding, read_at: datetime | None) -> bool:
    least = source.options.get("minOffsetsPerTrigger")
    waiting = finding.backlog["offsets"]
    if least is None or read_at is None or sum(waiting.values()) >= int(least):
        return False
    if len(finding.reasons) > sum(1 for count in waiting.values() if count):
        return False  # a new partition, a loss or a missing topic is told at once
    return datetime.now(UTC) - read_at < trigger_delay(source.options)


def _starts_at_the_beginning(options: Mapping[str, Any]) -> bool:
    by_time = any(name.startswith(("startingtimestamp", "startingoffsetsby")) for name in options)
    return not by_time and str(options.get("startingoffsets", "earliest")).lower() == "earliest"


def _compare(committed: Offsets | None, found: TopicOffsets) -> Finding:
    known = flat(committed)
    waiting: dict[str, int] = {}
    for partition, end in found.latest.items():
        start = max(known.get(partition, 0), found.earliest[partition])
        waiting[partition[0]] = waiting.get(partition[0], 0) + max(end - start, 0)
    reasons = [f"there is no topic {topic}" for topic in found.missing]
    reasons += [f"{count} new offset(s) in topic {topic}" for topic, count in waiting.items() if count]
    if committed is not None:
        new = sorted(found.latest.keys() - known.keys())
        reasons += [f"partition {number} of topic {topic} is new" for topic, number in new]
        reasons += [str(loss) for loss in kafka_losses(committed, found)]
    return Finding(tuple(reasons), {"offsets": waiting})
