"""A parquet file of the storage, read whole.

Not by pyarrow.parquet.read_table: its threads may hold Python objects for a moment longer, and one that lets
go of them while the interpreter ends aborts the process ("terminate called without an active exception").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from drawdown.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa


def read_parquet(storage: Storage, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows, with some of the columns or (None) with all; times are of microseconds, as Delta keeps them.

    Args:
        path: relative to the storage root.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferReader(storage.read_bytes(path))
    wanted = None if columns is None else list(columns)
    return pq.ParquetFile(content, coerce_int96_timestamp_unit="us").read(columns=wanted)
