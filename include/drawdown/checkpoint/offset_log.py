"""One file of ``offsets/``: the offsets up to which a batch reads, and the watermark it runs with.

Source: org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqLog (Spark 4.2). Version 1
has a line per source, in the order of the query plan; version 2
(``spark.sql.streaming.offsetLog.formatVersion``) has a line ``name:offset`` per source that has one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from drawdown.checkpoint.log_text import parse_json, parse_object, read_lines, torn
from drawdown.storage import Storage

_NEWEST_VERSION = 2
_NO_OFFSET = "-"


@dataclass(frozen=True)
class OffsetLogEntry:
    """The offsets of one batch.

    Attributes:
        metadata: ``batchWatermarkMs`` and ``batchTimestampMs`` (milliseconds since 1970 UTC) and
            ``conf`` (the settings frozen in the checkpoint).
        by_source: the end offset per use of a source, by its number in the query plan ("0", "1", ...), or
            by the source's own name (version 2); None for a source that had no data yet. Kafka:
            {topic: {partition: next offset}}; files: {"logOffset": n}; Delta: reservoirVersion, index.
    """

    metadata: dict[str, Any]
    by_source: dict[str, Any]

    @property
    def offsets(self) -> list[Any]:
        """Return the end offsets in the order of the file."""
        return list(self.by_source.values())

    @property
    def planned_ms(self) -> int:
        """Return when the batch was planned, its current_timestamp, milliseconds since 1970 UTC."""
        return int(self.metadata.get("batchTimestampMs", 0))

    @property
    def watermark_ms(self) -> int:
        """Return the watermark by which the batch evicts state, milliseconds since 1970 UTC; 0 for none."""
        return int(self.metadata.get("batchWatermarkMs", 0))


def read_offsets(storage: Storage, path: str) -> OffsetLogEntry:
    """Read one offset file.

    Raises:
        RefusedError: ``checkpoint.torn``, ``checkpoint.foreign`` or ``checkpoint.future``.
        FileNotFoundError: the file does not exist.
    """
    version, lines = read_lines(storage, path, _NEWEST_VERSION)
    if not lines:
        raise torn(storage, path, "it ends after its version")
    metadata = parse_object(storage, path, lines[0]) if lines[0].strip() else {}
    watermark = metadata.get("batchWatermarkMs", 0)
    if not isinstance(watermark, int):
        raise torn(storage, path, f"batchWatermarkMs is {watermark!r}, not a number of milliseconds")
    named = _named(storage, path, lines[1:]) if version == 2 else _numbered(lines[1:])
    return OffsetLogEntry(
        metadata,
        {
            name: None if text == _NO_OFFSET else parse_json(storage, path, text)
            for name, text in named.items()
        },
    )


def _numbered(lines: list[str]) -> dict[str, str]:
    return {str(index): line for index, line in enumerate(lines)}


def _named(storage: Storage, path: str, lines: list[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for line in lines:
        name, colon, offset = line.partition(":")
        if not colon:
            raise torn(storage, path, f"the line {line[:40]!r} is not source:offset")
        named[name] = offset
    return named
