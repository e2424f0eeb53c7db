"""Staged parquet files as records for Kafka, in portions that fit one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from drawdown.errors import TransformError
from drawdown.metastore.records import StagedFile
from drawdown.storage import Storage
from drawdown.values.kafka_names import OTHER_TOPIC, RESERVED_ROWS, is_reserved

# A transaction must end long before the broker ends it (transaction.timeout.ms).
_ROWS = 50_000
_BYTES = 16 * 1024 * 1024

Record = tuple[Any, Any, str | None, int | None, Any]


@dataclass(frozen=True)
class Portion:
    """The rows of one transaction, up to row `until` of the file."""

    rows: Any  # pyarrow.RecordBatch
    until: int

    def records(self) -> Iterator[Record]:
        """Yield key, value, topic, partition and headers of each row; None for a missing column."""
        names = set(self.rows.schema.names)
        columns = [
            self.rows.column(name).to_pylist() if name in names else [None] * self.rows.num_rows
            for name in ("key", "value", "topic", "partition")
        ]
        yield from zip(*columns, self._headers(names), strict=True)

    def _headers(self, names: set[str]) -> list[Any]:
        if "headers" not in names:
            return [None] * self.rows.num_rows
        given = self.rows.column("headers").to_pylist()
        return [each and [(header["key"], header["value"]) for header in each] for each in given]


def portions(storage: Storage, file: StagedFile, skip: int) -> Iterator[Portion]:
    """Yield the rows of a staged file after its first `skip`, in order."""
    import pyarrow.parquet as pq

    first = 0
    with storage.open(storage.relative(file.path)) as stream:
        for batch in pq.ParquetFile(stream).iter_batches(batch_size=_ROWS):
            rest = batch.slice(max(0, skip - first))
            start = first + batch.num_rows - rest.num_rows
            first += batch.num_rows
            at_once = max(1, rest.num_rows * _BYTES // max(rest.nbytes, _BYTES))
            for begin in range(0, rest.num_rows, at_once):
                part = rest.slice(begin, at_once)
                yield Portion(part, start + begin + part.num_rows)


def reserved_topics(storage: Storage, file: StagedFile) -> set[str]:
    """Return the reserved topics that rows of a file name."""
    import pyarrow.parquet as pq

    found: set[str] = set()
    with storage.open(storage.relative(file.path)) as stream:
        for batch in pq.ParquetFile(stream).iter_batches(columns=["topic"], use_threads=False):
            found.update(name for name in batch.column(0).unique().to_pylist() if name and is_reserved(name))
    return found


def refuse_reserved_topics(names: Collection[str], where: str) -> None:
    """Raise TransformError ``sink.reserved-topic`` if there are any."""
    if names:
        raise TransformError(
            RESERVED_ROWS,
            f"rows name the reserved topic {min(names)}",
            where=where,
            do=OTHER_TOPIC,
        )


def rows_without(storage: Storage, file: StagedFile, column: str) -> int:
    """Return how many rows have NULL in a column."""
    import pyarrow.parquet as pq

    with storage.open(storage.relative(file.path)) as stream:
        batches = pq.ParquetFile(stream).iter_batches(columns=[column], use_threads=False)
        return sum(batch.column(0).null_count for batch in batches)
