"""The Kafka offsets that a replay reads: from the first that the live query read up to where it stood then.

All of them are read: the time of a record is not its event time, so none in between can be skipped. Offsets
that were lost before the query could read them are not required.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from drawdown.brokers.client import no_answer
from drawdown.brokers.offsets import Partition, TopicOffsets, flat, topic_ids, topic_offsets
from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch
from drawdown.sources.kafka.losses import TOPIC_IDS, made_again
from drawdown.sources.replay_basis import ReplayedSource
from drawdown.sources.replay_bound import does_without, from_then_on, newest_until
from drawdown.values.text import counted


@dataclass(frozen=True)
class OffsetRanges:
    """For each partition of a source, the first offset to read and the one after the last."""

    start: Mapping[Partition, int]
    end: Mapping[Partition, int]


def offsets_to_read(of: ReplayedSource) -> OffsetRanges:
    """Return what a replay of its interval reads of a Kafka source.

    Raises:
        RefusedError: ``replay.offsets-gone``, ``replay.no-start``.
        SourceError: the broker does not answer.
    """
    from confluent_kafka import KafkaException

    end = flat(of.basis.past.offset(of.name))
    if not end:
        return OffsetRanges({}, {})
    broker = of.workspace.project.brokers[of.source.broker]
    try:
        found = topic_offsets(broker, of.source)
        ids = topic_ids(broker, (topic for topic, _ in end))
    except KafkaException as cause:
        raise no_answer(broker, "source.broker", f"source {of.name} of {of.pipeline.name}", cause) from None
    history = _History(of.name, of.number, _first(of), ids)
    for batch in of.batches():
        if batch.batch_id <= of.basis.batch.batch_id:
            history.add(batch)
    if gone := sorted(history.gone(found), key=lambda each: each.batch_id):
        bound = newest_until(of, gone[-1].batch_id)
        if not does_without(of, bound):
            raise _refused(of, gone, from_then_on(of, bound))
    there = {partition: offset for partition, offset in end.items() if partition in found.latest}
    start = {
        p: min(max(history.start.get(p, offset), found.earliest[p]), offset) for p, offset in there.items()
    }
    return OffsetRanges(start, there)


@dataclass(frozen=True)
class _Gone:
    """Records that no longer exist, and the last batch that had read of them."""

    what: str
    batch_id: int


@dataclass
class _History:
    """What the batches of a source have read, oldest first, of the topics that exist now.

    Attributes:
        number: which of a batch's offsets is its.
        first: where the first run began.
        ids: the ids of the topics that exist now.
        start: by partition, the first offset that was read.
        again: by topic, the last batch that read it before it was recreated.
        lost: ranges that were deleted before a batch could read them.
    """

    name: str
    number: int
    first: Mapping[Partition, int]
    ids: Mapping[str, str]
    start: dict[Partition, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)
    ends: list[tuple[int, Mapping[Partition, int]]] = field(default_factory=list)
    lost: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        before = flat(batch.offsets_from[self.number]) if batch.offsets_from else {}
        now = flat(batch.offsets_to[self.number])
        noted = batch.by_source.get(self.name, {})
        for topic in made_again(noted.get(TOPIC_IDS, {}), self.ids):
            self.again[topic] = batch.batch_id
        for partition, end in now.items():
            if self.again.get(partition[0]) == batch.batch_id:
                self.start.pop(partition, None)
            elif partition not in self.start:
                # A partition that was added later is read from its beginning: the record of its first batch
                # may be pruned, and where later batches began does not show it. Of a recreated topic Spark
                # continues from the old offset, or from its end.
                begins = before if partition[0] in self.again else self.first
                self.start[partition] = min(begins.get(partition, 0), end)
        self.ends.append((batch.batch_id, now))
        self.lost += noted.get("lost", ())

    def gone(self, found: TopicOffsets) -> Iterator[_Gone]:
        for topic, batch_id in self.again.items():
            yield _Gone(f"the records of topic {topic} from before it was recreated", batch_id)
        for (topic, number), begin in self.start.items():
            place = f"of partition {number} of topic {topic}"
            # The last batch does not name deleted topics.
            behind = self.again.get(topic, -1)
            end = max(ends.get((topic, number), 0) for id, ends in self.ends if id > behind)
            begins = found.earliest.get((topic, number), end)
            first, after = self._behind_losses(topic, number, begin), min(begins, end)
            if first < after:
                batch_id = self._batch_up_to((topic, number), after)
                yield _Gone(f"offsets {first} to {after - 1} {place}", batch_id)

    def _behind_losses(self, topic: str, number: int, offset: int) -> int:
        for loss in self.lost:
            here = (loss["topic"], loss["partition"]) == (topic, number)
            if here and loss["first"] <= offset < (loss["after"] or 0):
                offset = loss["after"]
        return offset

    def _batch_up_to(self, partition: Partition, offset: int) -> int:
        """Return the batch that read the offset before this one."""
        behind = self.again.get(partition[0], -1)
        reached = (id for id, ends in self.ends if id > behind and ends.get(partition, 0) >= offset)
        return next(reached)


def _first(of: ReplayedSource) -> Mapping[Partition, int]:
    fixed, name, pipeline = of.basis.past.kafka_start(of.name), of.name, of.pipeline
    if fixed is None:
        raise RefusedError(
            "replay.no-start",
            f"the checkpoint no longer shows where the first run of {pipeline.name} started in {name}",
            where=f"pipeline {pipeline.name}, source {name}",
            do=f"`drawdown checkpoint restore {pipeline.name} latest` brings its folder `sources` back",
        )
    return flat(fixed)


def _refused(of: ReplayedSource, gone: Sequence[_Gone], from_then: str) -> RefusedError:
    more = f", and more of {counted(len(gone) - 1, 'other partition')}" if len(gone) > 1 else ""
    return RefusedError(
        "replay.offsets-gone",
        f"source {of.name} of {of.pipeline.name} has read records that are gone: {gone[-1].what}{more}:"
        f" {of.interval} cannot be replayed{from_then}",
        where=f"pipeline {of.pipeline.name}, source {of.name}",
        do="replay a later interval; increase the topic's retention for the future",
    )
