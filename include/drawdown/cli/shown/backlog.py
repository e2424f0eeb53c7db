"""Measures how far a batch gets through each source's known backlog, in that source's unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drawdown.checkpoint import CheckpointFiles, log_offset
from drawdown.errors import DrawdownError
from drawdown.metastore.records import Batch, Checkpoint
from drawdown.storage import Storage


def progress_of(storage: Storage, checkpoint: Checkpoint, batch: Batch) -> dict[str, int]:
    """Return per source how many files, offsets or versions a batch reads; 0 if unknown."""
    order = checkpoint.fingerprint.get("source_order", ())
    files = CheckpointFiles(storage, checkpoint.path)
    read = {}
    for index, (name, end) in enumerate(zip(order, batch.offsets_to, strict=False)):
        start = batch.offsets_from[index] if index < len(batch.offsets_from) else None
        read[name] = _between(files, index, start, end)
    return read


def _between(files: CheckpointFiles, index: int, start: Any, end: Any) -> int:
    last = log_offset(end)
    if last is not None:
        first = (-1 if (before := log_offset(start)) is None else before) + 1
        try:
            return len(files.source_files(index, first, last)) if last >= first else 0
        except DrawdownError:
            # A progress bar is not worth an error: the drain will find and report the same problem.
            return 0
    if not isinstance(end, Mapping):
        return 0
    start = start or {}
    if "reservoirVersion" in end:
        return int(end["reservoirVersion"]) - int(start.get("reservoirVersion", 0))
    return sum(
        offset - int(start.get(topic, {}).get(partition, 0))
        for topic, partitions in end.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    )
