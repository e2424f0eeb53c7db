"""A parquet file of the storage, read whole or in parts.

Not by pyarrow.parquet.read_table: its threads may hold Python objects for a moment longer, and one that lets
go of them while the interpreter ends aborts the process ("terminate called without an active exception").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from drawdown.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 16_384


def read_parquet(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows, with some of the columns or (None) with all; times are of microseconds, as Delta keeps them.

    Args:
        path: relative to the storage root.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Arrow's own memory, and this thread alone: no other ever holds an object of Python's.
    copied = pa.BufferOutputStream()
    copied.write(storage.read_bytes(path))
    file = pq.ParquetFile(pa.BufferReader(copied.getvalue()), coerce_int96_timestamp_unit="us")
    return file.read(columns=None if columns is None else list(columns), use_threads=False)


def parquet_parts(
    storage: Storage, path: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of `read_parquet` in their order, a few thousand at a time."""
    import pyarrow.parquet as pq

    with storage.open(path) as stream:
        file = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
        names = None if columns is None else list(columns)
        # One row group after the other: asked for all, Arrow keeps what it has read of the file.
        for group in range(file.num_row_groups):
            yield from file.iter_batches(_ROWS, row_groups=[group], columns=names, use_threads=False)
