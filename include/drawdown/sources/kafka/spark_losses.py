"""Lost offsets at the Kafka sources of a pipeline: refused before the query starts, or counted per batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException

from drawdown.brokers.client import no_answer
from drawdown.brokers.offsets import is_lossy, topic_ids, topic_offsets
from drawdown.errors import SourceError
from drawdown.plan_verdicts import PlanVerdict
from drawdown.sources.kafka.losses import TOPIC_IDS, Loss, headroom, kafka_losses, made_again, noted_ids
from drawdown.spec import Pipeline
from drawdown.values.text import counted
from drawdown.workspace import Generation

# Ranges that an error names one by one.
_SHOWN = 5


@dataclass(frozen=True)
class Losses:
    """What is lost at each Kafka source when a run starts.

    Attributes:
        ids: by source, the ids of its topics; each batch records them, so that the next run notices a
            recreated topic.
        room: by source and topic, see `headroom`; for topics with unread records.
    """

    found: Mapping[str, Sequence[Loss]] = field(default_factory=dict)
    ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    room: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def verdicts(self) -> list[PlanVerdict]:
        """Return a warning for each loss; the next run counts it and continues."""
        return [
            PlanVerdict("warning", "source.data-lost", f"source {name}: {loss}", about=name)
            for name, losses in self.found.items()
            for loss in losses
        ]

    def notices(self) -> Iterator[dict[str, Any]]:
        """Yield notices for the run record: how near retention was to unread offsets when the run began."""
        for name, topics in self.room.items():
            for topic, left in topics.items():
                yield {
                    "id": "source.headroom",
                    "what": f"retention of topic {topic} could delete {counted(left, 'more offset')} of a"
                    " partition before reaching one that was not read",
                    "about": name,
                    "do": "",
                }

    def note(self, source: str, before: Any, now: Any) -> dict[str, Any]:
        """Return a source's entries in ``Batch.by_source``: ``lost`` (skipped ranges) and ``topic_ids``."""
        passed = [loss.within(before or {}, now or {}) for loss in self.found.get(source, ())]
        lost = [entry for entry in passed if entry is not None]
        ids = self.ids.get(source)
        return {**({"lost": lost} if lost else {}), **({TOPIC_IDS: dict(ids)} if ids else {})}


def lost_offsets(notes: Iterable[Mapping[str, Any]]) -> int:
    """Return how many offsets the notes of a batch count as lost, for ``Counts.lost``; unknown ones as 0."""
    return sum(entry["offsets"] or 0 for note in notes for entry in note.get("lost", ()))


def find_losses(generation: Generation) -> Losses:
    """Compare the offsets in the checkpoint with those on the brokers.

    Raises:
        SourceError: ``source.data-lost`` for a source with failOnDataLoss (Spark's default: true),
            with topic, partition and offset range; ``source.broker``.
    """
    found: dict[str, list[Loss]] = {}
    ids: dict[str, dict[str, str]] = {}
    room: dict[str, dict[str, int]] = {}
    pipeline, checkpoint = generation.pipeline, generation.checkpoint
    stands = _stands(generation) if checkpoint is not None else {}
    noted = noted_ids(generation.metastore, checkpoint, generation.files) if checkpoint is not None else {}
    for name, source in pipeline.streaming_sources.items():
        if source.format != "kafka":
            continue
        broker = generation.project.brokers[source.broker]
        try:
            now = topic_offsets(broker, source)
            ids[name] = topic_ids(broker, (topic for topic, _ in now.latest))
        except KafkaException as cause:
            whose = f"source {name} of {pipeline.name}"
            raise no_answer(broker, "source.broker", whose, cause) from None
        if stands.get(name) is None:
            continue
        found[name] = kafka_losses(stands[name], now, made_again(noted.get(name, {}), ids[name]))
        room[name] = headroom(stands[name], now)
        if not is_lossy(source):
            _refuse(pipeline, name, found[name])
    return Losses(found, ids, room)


def _refuse(pipeline: Pipeline, name: str, losses: Sequence[Loss]) -> None:
    if losses:
        more = f" (and {len(losses) - _SHOWN} more)" if len(losses) > _SHOWN else ""
        raise SourceError(
            "source.data-lost",
            f"source {name} of {pipeline.name}: {'; '.join(map(str, losses[:_SHOWN]))}{more}",
            where=f"pipeline {pipeline.name}, source {name}",
            do="restore the records, or set `failOnDataLoss: false` in its options: the next run then"
            " continues without them and counts them as lost",
        )


def _stands(generation: Generation) -> dict[str, Any]:
    """Return the next offsets to read, by Kafka source; a source that is used twice has one entry."""
    files, pipeline = generation.files, generation.pipeline
    order = generation.fingerprint.get("source_order", ())
    last = files.last_commit_batch()
    if last is not None:
        return dict(zip(order, files.offsets(last).offsets, strict=False))
    kafka = [name for name, source in pipeline.streaming_sources.items() if source.format == "kafka"]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(order))}
    return {name: files.kafka_start(numbers[name]) for name in kafka if name in numbers}
