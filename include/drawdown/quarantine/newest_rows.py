"""The newest rows of a quarantine, for a page: a few files of the table, whatever its size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from drawdown.quarantine.row_keys import keys_of
from drawdown.quarantine.row_states import COLUMNS, SetAside, decided_rows, row_of, table_of
from drawdown.spec import Pipeline
from drawdown.storage.parquet_file import parquet_parts
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    import pyarrow as pa

_FILES = 40
"""Files that are opened at most: in a bucket each is a request."""
_CLOCKS = timedelta(hours=1)
"""How far the clocks of the driver, which sets rows aside, and of the metastore may differ."""


@dataclass(frozen=True)
class NewestRows:
    """Rows of a quarantine, newest first; ``of``: how many rows the table has, None where it does not say."""

    rows: Sequence[SetAside]
    of: int | None

    @property
    def is_all(self) -> bool:
        return self.of == len(self.rows)


def newest_rows(workspace: Workspace, pipeline: Pipeline, most: int) -> NewestRows:
    """Return at most so many of the newest rows, each with its state.

    Raises:
        RefusedError: ``quarantine.none``: there is no table yet.
        SourceError: it cannot be read.
    """
    import pyarrow as pa

    files = table_of(workspace.project, pipeline).newest_files()
    parts: list[pa.RecordBatch] = []
    for path, _ in files[:_FILES]:
        left = most - sum(part.num_rows for part in parts)
        if left <= 0:
            break
        parts += _first(workspace, path, left)
    counts = [rows for _, rows in files]
    total = None if None in counts else sum(rows for rows in counts if rows is not None)
    if not parts:
        return NewestRows((), total)
    content = pa.concat_tables([pa.Table.from_batches([part]) for part in parts], promote_options="default")
    values = content.to_pylist()
    times = [each.get("set_aside_at") for each in values]
    oldest = min((at for at in times if at is not None), default=None)
    since = None if oldest is None or None in times else oldest - _CLOCKS
    decided = decided_rows(workspace, pipeline, since)
    rows = [row_of(key, each, decided) for key, each in zip(keys_of(content), values, strict=True)]
    newest_first = sorted(rows, key=lambda row: (row.generation or 0, row.batch_id), reverse=True)
    return NewestRows(newest_first, total)


def _first(workspace: Workspace, path: str, most: int) -> list[pa.RecordBatch]:
    storage = workspace.storage
    found: list[pa.RecordBatch] = []
    for part in parquet_parts(storage, storage.relative(path)):
        known = [name for name in COLUMNS if name in part.schema.names]
        found.append(part.select(known).slice(0, most))
        most -= found[-1].num_rows
        if most <= 0:
            break
    return found
