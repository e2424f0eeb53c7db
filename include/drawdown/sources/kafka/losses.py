"""Offsets of a Kafka source that were deleted before any run could read them.

They are looked for before a query starts: Spark reports them in the middle of a batch and, with
failOnDataLoss: false, only in its log. In a recreated topic Spark continues from the old offset or, when the
new topic is shorter, from its end, and never reads what comes before (KafkaMicroBatchStream,
KafkaOffsetReader, Spark 4.2). Offsets are counted, not records: transaction markers and compacted records
have offsets too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drawdown.brokers.offsets import Offsets, Partition, TopicOffsets, flat
from drawdown.checkpoint import CheckpointFiles
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint

TOPIC_IDS = "topic_ids"
"""Key in ``Batch.by_source``: the id of each topic when the batch was planned."""


@dataclass(frozen=True)
class Loss:
    """A lost range of one partition.

    Attributes:
        stands: the next offset to read, by the checkpoint; None for a partition that is not in it.
        first: the first lost offset.
        after: the offset after the last lost one; None when it is unknown.
        why: what happened, in words.
    """

    topic: str
    partition: int
    stands: int | None
    first: int
    after: int | None
    why: str
    remade: bool = False

    def __str__(self) -> str:
        place = f"partition {self.partition} of topic {self.topic}"
        if self.after is None:
            return f"{place} {self.why}: its records from offset {self.first} on are lost"
        return f"{place} {self.why}: offsets {self.first} to {self.after - 1} are lost"

    def within(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the part of this loss that a batch from `before` to `now` skips, for its record, or None."""
        start = before.get(self.topic, {}).get(str(self.partition))
        end = now.get(self.topic, {}).get(str(self.partition))
        if self.remade or self.after is None:
            # Skipped as a whole, when the partition is dropped or its offset jumps.
            if start != self.stands or end == start:
                return None
            first, after = self.first, self.after
        else:
            first = self.first if start is None else max(self.first, start)
            after = min(self.after, end or 0)
            if after <= first:
                return None
        return {
            "topic": self.topic,
            "partition": self.partition,
            "first": first,
            "after": after,
            "offsets": None if after is None else after - first,
        }


def kafka_losses(committed: Offsets, found: TopicOffsets, made_again: Iterable[str] = ()) -> list[Loss]:
    """Return every loss between the checkpoint and the broker, sorted by topic and partition.

    Args:
        committed: the next offsets to read, by the checkpoint.
        made_again: topics that have another id than when they were last read.
    """
    again = frozenset(made_again)
    losses = [*_of_known(flat(committed), found, again), *_of_new(flat(committed), found)]
    return sorted(losses, key=lambda loss: (loss.topic, loss.partition))


def noted_ids(
    metastore: Metastore, checkpoint: Checkpoint, files: CheckpointFiles
) -> Mapping[str, Mapping[str, str]]:
    """Return the topic ids that the last committed batch recorded, by source and topic."""
    last = files.last_commit_batch()
    batch = None if last is None else metastore.batch(checkpoint.pipeline, checkpoint.generation, last)
    return {} if batch is None else {name: note.get(TOPIC_IDS, {}) for name, note in batch.by_source.items()}


def made_again(noted: Mapping[str, str], ids: Mapping[str, str]) -> list[str]:
    """Return the recreated topics: their id differs from the recorded one; without a recorded id, unknown."""
    return [topic for topic, id in ids.items() if noted.get(topic, id) != id]


def headroom(committed: Offsets, found: TopicOffsets) -> dict[str, int]:
    """Return for each topic how many offsets retention can still delete before it reaches unread ones.

    It is the smallest number of any partition; partitions that were read to the end can lose nothing.
    """
    left: dict[str, int] = {}
    for partition, stands in flat(committed).items():
        latest = found.latest.get(partition, 0)
        if stands < latest:
            room = max(stands - found.earliest[partition], 0)
            left[partition[0]] = min(room, left.get(partition[0], room))
    return left


def _of_known(
    stands: Mapping[Partition, int], found: TopicOffsets, made_again: frozenset[str]
) -> Iterator[Loss]:
    for (topic, number), at in stands.items():
        latest = found.latest.get((topic, number))
        if latest is None:
            yield Loss(topic, number, at, at, None, "is gone")
            continue
        earliest = found.earliest[topic, number]
        if at > 0 and (topic in made_again or latest < at):
            why = f"was recreated after it had been read up to offset {at}"
            skipped = min(at, latest)
            if skipped > earliest:
                yield Loss(topic, number, at, earliest, skipped, why, remade=True)
            else:
                yield Loss(topic, number, at, at, None, why, remade=True)
        elif earliest > at:
            yield Loss(topic, number, at, at, earliest, f"begins at offset {earliest} now")


def _of_new(stands: Mapping[Partition, int], found: TopicOffsets) -> Iterator[Loss]:
    for (topic, number), earliest in found.earliest.items():
        if (topic, number) not in stands and earliest > 0:
            yield Loss(topic, number, None, 0, earliest, f"is new and begins at offset {earliest}")
