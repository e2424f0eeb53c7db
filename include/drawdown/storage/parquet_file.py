"""Read a parquet file of the storage, completely or in parts.

Not by pyarrow.parquet.read_table: its threads may hold Python objects a moment longer, and releasing one
while the interpreter ends aborts the process ("terminate called without an active exception").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from drawdown.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 16_384


def read_parquet(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all rows, with some or (None) all of the columns; times in microseconds, as Delta keeps them.

    Args:
        path: relative to the storage root.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Arrow's own memory and only this thread, so that no other thread holds a Python object.
    copied = pa.BufferOutputStream()
    copied.write(storage.read_bytes(path))
    file = pq.ParquetFile(pa.BufferReader(copied.getvalue()), coerce_int96_timestamp_unit="us")
    return file.read(columns=None if columns is None else list(columns), use_threads=False)


def parquet_parts(
    storage: Storage, path: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of `read_parquet` in their order, a few thousand at a time."""
    import pyarrow.parquet as pq

    with storage.open(path) as stream:
        file = pq.ParquetFile(stream, coerce_int96_timestamp_unit="us")
        names = None if columns is None else list(columns)
        # One row group after the other: in one call for all, Arrow would keep what it has read of the file.
        for group in range(file.num_row_groups):
            yield from file.iter_batches(_ROWS, row_groups=[group], columns=names, use_threads=False)
