"""Staged rows of update mode by their keys: which keys are duplicates, and which row of a key is the latest.

The files are read without Spark, so that a release needs none: a publish of several batches holds their key
columns in memory, the check for duplicate keys those of one batch. Keys are compared null-safe: NULL is a key
like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from drawdown.errors import TransformError
from drawdown.metastore.records import StagedFile
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.storage.parquet_file import parquet_parts, read_parquet
from drawdown.values.text import counted

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 3


def duplicate_keys(
    storage: Storage, files: Sequence[StagedFile], keys: Sequence[str]
) -> tuple[int, list[str]]:
    """Return how many keys occur more than once in these files, and up to three of them as text."""
    import pyarrow.compute as pc

    table = _read(storage, files, keys)
    if table is None:
        return 0, []
    counted = table.group_by(list(keys)).aggregate([([], "count_all")])
    more = counted.filter(pc.greater(counted["count_all"], 1))
    shown = [", ".join(f"{k}={row[k]!r}" for k in keys) for row in more.slice(0, _SHOWN).to_pylist()]
    return more.num_rows, shown


def refuse_duplicate_keys(
    storage: Storage, pipeline: Pipeline, files: Sequence[StagedFile], where_from: str
) -> None:
    """Raise TransformError ``sink.duplicate-keys`` when rows that are written together share a key.

    Args:
        where_from: for the error's text: "batch 3".
    """
    if not pipeline.sink.keys:
        return
    count, some = duplicate_keys(storage, files, pipeline.sink.keys)
    if count:
        raise TransformError(
            "sink.duplicate-keys",
            f"not unique in {where_from}: {counted(count, 'key')} of {pipeline.name} ({'; '.join(some)}):"
            " no column shows which row is the newest",
            where=str(pipeline.folder / pipeline.transform),
            do="let the transform give one row per key (aggregate by the keys), or add a column to keys",
        )


def latest_rows(
    storage: Storage, files: Sequence[tuple[int, StagedFile]], keys: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield one row per key: that of the last batch which has the key.

    Rows of a single batch are passed on as they are. Of several batches, only the keys are held in memory.

    Args:
        files: by batch id, in the order of the batches; within a batch a key comes once.
    """
    several = len({batch_id for batch_id, _ in files}) > 1
    wanted = _latest(storage, [file for _, file in files], keys) if several else None
    begin = 0
    for _, file in files:
        for rows in parquet_parts(storage, storage.relative(file.path)):
            end = begin + rows.num_rows
            yield rows if wanted is None else rows.filter(wanted.slice(begin, rows.num_rows))
            begin = end


def _latest(storage: Storage, files: Sequence[StagedFile], keys: Sequence[str]) -> pa.BooleanArray:
    """Return for each row whether it is the last of its key."""
    import numpy as np
    import pyarrow as pa

    table = _read(storage, files, keys)
    numbered = table.append_column("_dd_position", pa.arange(0, table.num_rows))
    last = numbered.group_by(list(keys)).aggregate([("_dd_position", "max")])["_dd_position_max"]
    wanted = np.zeros(table.num_rows, dtype=bool)
    wanted[last.to_numpy()] = True
    return pa.array(wanted)


def _read(storage: Storage, files: Sequence[StagedFile], columns: Sequence[str] | None) -> Any:
    import pyarrow as pa

    tables = [read_parquet(storage, storage.relative(file.path), columns) for file in files]
    # Files that were staged before a column was added lack it.
    return pa.concat_tables(tables, promote_options="default") if tables else None
