"""The backlog of a Kafka source: the partitions' ends compared with the offsets in the checkpoint.

Source (Spark 4.2): org.apache.spark.sql.kafka010.KafkaMicroBatchStream (a new partition is read from
its beginning).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from drawdown.brokers.offsets import (
    Offsets,
    TopicOffsets,
    flat,
    is_lossy,
    lower_case_options,
    topic_ids,
    topic_offsets,
)
from drawdown.brokers.unread import SECONDS, first_unread, retention_ms
from drawdown.metastore import Metastore
from drawdown.sources.committed_offsets import CommittedOffsets, SourceProgress
from drawdown.sources.findings import SourceFinding
from drawdown.sources.kafka.losses import Loss, kafka_losses, made_again, noted_ids
from drawdown.sources.kafka.options import trigger_delay
from drawdown.spec import Broker, Source
from drawdown.values.text import counted


@dataclass(frozen=True)
class CommittedKafkaOffsets:
    """How far a Kafka source was read.

    Attributes:
        offsets: the committed offsets; None without a checkpoint.
        ids: the ids of its topics, as the last committed batch recorded them.
        planned_at: when that batch was planned.
    """

    offsets: Offsets | None
    ids: Mapping[str, str]
    planned_at: datetime | None

    @classmethod
    def of(cls, past: CommittedOffsets, metastore: Metastore, name: str) -> CommittedKafkaOffsets:
        """Read that of a source from the checkpoint and the metastore."""
        ids: Mapping[str, str] = {}
        if past.checkpoint is not None and past.files is not None:
            ids = noted_ids(metastore, past.checkpoint, past.files).get(name, {})
        return cls(past.kafka_offset(name), ids, past.planned_at)


def waiting(at: SourceProgress) -> SourceFinding:
    """Return what waits at a Kafka source; see `kafka_backlog`."""
    past = CommittedKafkaOffsets.of(at.past, at.workspace.metastore, at.name)
    return kafka_backlog(at.workspace.project.brokers[at.source.broker], at.source, past)


def kafka_backlog(broker: Broker, source: Source, past: CommittedKafkaOffsets) -> SourceFinding:
    """Count the records after the committed offsets, per topic; report recreated topics.

    Fewer records than minOffsetsPerTrigger wait for more, but no longer than maxTriggerDelay after the last
    batch was planned. Spark alone forgets that time between runs, so there the option has little effect.

    A broker that does not answer within TIMEOUT is a reason to run: the drain reports what is wrong.
    """
    from confluent_kafka import KafkaException

    if past.offsets is None and not _starts_at_the_beginning(lower_case_options(source)):
        return SourceFinding(("the first run fixes where reading of the topics starts",))
    try:
        found = topic_offsets(broker, source)
        ids = topic_ids(broker, past.ids.keys() & {topic for topic, _ in found.latest})
    except KafkaException as error:
        return SourceFinding((f"Kafka at {broker.bootstrap_servers} does not answer: {error.args[0].str()}",))
    except (ValueError, re.error) as error:
        return SourceFinding((f"the topics cannot be read: {error}",))
    losses = () if past.offsets is None else kafka_losses(past.offsets, found, made_again(past.ids, ids))
    if is_lossy(source):
        losses = [loss for loss in losses if _moves_on(loss, found)]
    finding = _compare(past.offsets, found, losses)
    if any(finding.backlog["offsets"].values()):
        finding.backlog.update(_age(broker, source, past.offsets, found))
    return SourceFinding((), finding.backlog) if _may_wait(source, finding, past.planned_at) else finding


def _age(
    broker: Broker, source: Source, committed: Offsets | None, found: TopicOffsets
) -> dict[str, str | float]:
    """Return when the oldest unread record was written, and how long the broker still keeps it at least.

    Kafka deletes a segment when its newest record is older than `retention.ms`: the oldest may stay longer.
    """
    from confluent_kafka import KafkaException

    known = flat(committed)
    starts = {where: max(known.get(where, 0), found.earliest[where]) for where in found.latest}
    starts = {where: start for where, start in starts.items() if start < found.latest[where]}
    isolation = lower_case_options(source).get("kafka.isolation.level", "read_committed")
    began = time.monotonic()
    try:
        written = first_unread(broker, starts, str(isolation))
        left = max(SECONDS - (time.monotonic() - began), 0.1)
        kept = retention_ms(broker, {topic for topic, _ in written}, left)
    except KafkaException:
        return {}
    if not written:
        return {}
    oldest = datetime.fromtimestamp(min(written.values()) / 1_000, UTC)
    now_ms = datetime.now(UTC).timestamp() * 1_000
    left_ms = [at + kept[where[0]] - now_ms for where, at in written.items() if where[0] in kept]
    age: dict[str, str | float] = {"oldest": oldest.isoformat()}
    return {**age, "headroom": round(max(min(left_ms), 0.0) / 1_000, 1)} if left_ms else age


def _moves_on(loss: Loss, found: TopicOffsets) -> bool:
    """Whether the source's next offsets change: otherwise Spark plans no batch that could record the loss."""
    return found.latest.get((loss.topic, loss.partition)) != loss.stands


def _may_wait(source: Source, finding: SourceFinding, read_at: datetime | None) -> bool:
    least = source.options.get("minOffsetsPerTrigger")
    waiting = finding.backlog["offsets"]
    if least is None or read_at is None or sum(waiting.values()) >= int(least):
        return False
    if len(finding.reasons) > sum(1 for count in waiting.values() if count):
        return False  # a new partition, a loss or a missing topic is reported at once
    return datetime.now(UTC) - read_at < trigger_delay(source.options)


def _starts_at_the_beginning(options: Mapping[str, Any]) -> bool:
    by_time = any(name.startswith(("startingtimestamp", "startingoffsetsby")) for name in options)
    return not by_time and str(options.get("startingoffsets", "earliest")).lower() == "earliest"


def _compare(committed: Offsets | None, found: TopicOffsets, losses: Sequence[Loss]) -> SourceFinding:
    known = flat(committed)
    waiting: dict[str, int] = {}
    for partition, end in found.latest.items():
        start = max(known.get(partition, 0), found.earliest[partition])
        waiting[partition[0]] = waiting.get(partition[0], 0) + max(end - start, 0)
    reasons = [f"topic {topic} does not exist" for topic in found.missing]
    reasons += [
        f"{counted(count, 'new offset')} in topic {topic}" for topic, count in waiting.items() if count
    ]
    if committed is not None:
        new = sorted(found.latest.keys() - known.keys())
        reasons += [f"partition {number} of topic {topic} is new" for topic, number in new]
        reasons += [str(loss) for loss in losses]
    return SourceFinding(tuple(reasons), {"offsets": waiting})
