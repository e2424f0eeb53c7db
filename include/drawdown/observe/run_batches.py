"""The batches of a run: when each ran, what it read from which offsets, and what became of its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drawdown.metastore.records import Batch, Counts, Run

CARRIER = "#carrier"
"""Ends the names of hidden sources (query/carriers.py)."""
_LONGEST = 300


@dataclass(frozen=True)
class SourceRead:
    """What a batch read of one source: its offsets as texts, rows, and the files of a file source.

    Attributes:
        names: of the first files, paths in the storage.
    """

    source: str
    before: str
    after: str
    rows: int | None
    files: int | None
    bytes: int | None
    names: Sequence[str] = ()


@dataclass(frozen=True)
class BatchEntry:
    """One batch of a run.

    Attributes:
        started_at: None where Spark's progress is not kept: a run keeps that of its last 20 batches.
        seconds: of the whole trigger; ``durations`` by its phases, in milliseconds.
    """

    batch_id: int
    status: str
    verdict: str | None
    counts: Counts
    watermark: datetime | None
    started_at: datetime | None
    seconds: float | None
    durations: Mapping[str, int]
    reads: Sequence[SourceRead]


def batch_entries(run: Run, batches: Sequence[Batch], source_order: Sequence[str]) -> list[BatchEntry]:
    """Return the entries of these batches of a run, in order.

    Args:
        source_order: the names of Spark's offsets, in their order.
    """
    progress = {entry["batch_id"]: entry for entry in run.progress}
    return [_entry(batch, progress.get(batch.batch_id, {}), source_order) for batch in batches]


def _entry(batch: Batch, progress: Mapping[str, Any], source_order: Sequence[str]) -> BatchEntry:
    durations = dict(progress.get("duration_ms", {}))
    took = durations.get("triggerExecution")
    started = progress.get("timestamp")
    return BatchEntry(
        batch_id=batch.batch_id,
        status=batch.status,
        verdict=batch.verdict,
        counts=batch.counts,
        # Before any row has an event time the watermark is 1970.
        watermark=batch.watermark if batch.watermark and batch.watermark.timestamp() > 0 else None,
        started_at=datetime.fromisoformat(started) if started else None,
        seconds=None if took is None else took / 1000,
        durations=durations,
        reads=list(_reads(batch, source_order)),
    )


def _reads(batch: Batch, source_order: Sequence[str]) -> Iterator[SourceRead]:
    for name in dict.fromkeys(source_order):
        if name.endswith(CARRIER):
            continue
        number = source_order.index(name)
        before, after = _at(batch.offsets_from, number), _at(batch.offsets_to, number)
        of = batch.by_source.get(name, {})
        yield SourceRead(
            name,
            offset_text(before),
            offset_text(after),
            rows=of.get("read"),
            files=of.get("files"),
            bytes=of.get("bytes"),
            names=of.get("names", ()),
        )


def _at(offsets: Sequence[Any], number: int) -> Any:
    return offsets[number] if number < len(offsets) else None


def offset_text(offset: Any) -> str:
    """Return an offset of Spark in short: of files the entry of its log, of Kafka each partition's."""
    if isinstance(offset, str):
        try:
            offset = json.loads(offset)
        except ValueError:
            return _cut(offset)
    match offset:
        case None:
            return "the beginning"
        case {"logOffset": int(number)}:
            return f"log entry {number}"
        case {"reservoirVersion": version, "index": index}:
            return f"version {version}, file {index}"
        case dict() if offset and all(isinstance(each, dict) for each in offset.values()):
            return _cut("; ".join(_topic(topic, partitions) for topic, partitions in sorted(offset.items())))
    return _cut(json.dumps(offset, ensure_ascii=False))


def _topic(topic: str, partitions: Mapping[str, Any]) -> str:
    listed = sorted(partitions.items(), key=lambda each: (len(each[0]), each[0]))
    return f"{topic} {', '.join(f'{partition}: {offset}' for partition, offset in listed)}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
