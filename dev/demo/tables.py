"""Reads what the pipelines published, without Spark: delta-rs and pyarrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq

from dev.demo.rows import Rows, normal
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import SourceError


def read_table(storage_root: Path, table: str) -> Rows:
    """The rows of a Delta table, a quarantine or a folder written by Spark's file sink.

    Raises:
        SourceError: there is no such table.
    """
    folder = storage_root / table
    if (folder / "_delta_log").is_dir():
        content = DeltaTableFiles(str(folder)).content()
    elif (folder / "_spark_metadata").is_dir():
        content = _read_file_sink(folder)
    else:
        raise SourceError(
            "demo.no-table",
            f"no run has made {table}",
            where=str(folder),
            do="`drawdown runs` shows what the pipelines did",
        )
    if table.startswith("quarantine/"):
        return _rejected(content)
    return _rows(content)


def _read_file_sink(folder: Path) -> pa.Table:
    """Only the files the sink's log names: others are leftovers of a batch that did not finish."""
    tables = [pq.read_table(file) for file in _committed_files(folder / "_spark_metadata")]
    return pa.concat_tables(tables) if tables else pa.table({})


def _committed_files(log: Path) -> list[Path]:
    """Paths in the log of Spark's FileStreamSinkLog: `v1`, then one JSON object a line.

    A file `<n>.compact` repeats all before it, so reading starts at the last one.
    """
    batches = {int(entry.name.split(".")[0]): entry for entry in log.iterdir() if entry.name[0].isdigit()}
    start = max((batch for batch, entry in batches.items() if entry.name.endswith(".compact")), default=0)
    lines = [
        line
        for batch in sorted(batch for batch in batches if batch >= start)
        for line in batches[batch].read_text(encoding="utf-8").splitlines()[1:]
    ]
    return [Path(unquote(urlparse(json.loads(line)["path"]).path)) for line in lines]


def _rows(content: pa.Table) -> Rows:
    return normal(content.column_names, _values(content))


def _rejected(content: pa.Table) -> Rows:
    """Reason and, for what no parser could read, the text as it came (see the oracle's quarantine)."""
    picked = content.select(["reasons", "payload"])
    rows = [
        (",".join(reasons), payload if reasons == ["malformed"] else None)
        for reasons, payload in _values(picked)
    ]
    return normal(["reason", "payload"], rows)


def _values(content: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of Python values; nanosecond times (Spark's INT96) become microseconds."""
    columns = [
        column.cast(pa.timestamp("us", column.type.tz)) if pa.types.is_timestamp(column.type) else column
        for column in content.columns
    ]
    return list(zip(*(column.to_pylist() for column in columns), strict=True))
