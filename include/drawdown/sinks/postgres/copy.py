"""Staged parquet files as PostgreSQL's COPY takes them: CSV, made by Arrow, a few thousand rows at a time.

Arrow quotes every text and leaves NULL unquoted, which is how COPY tells an empty text from NULL. Binary
values become hex, arrays of single values PostgreSQL arrays, other nested values JSON.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

from drawdown.errors import TransformError
from drawdown.metastore.records import StagedFile
from drawdown.storage import Storage
from drawdown.storage.parquet_file import parquet_parts


def columns_of(storage: Storage, file: StagedFile) -> list[str]:
    """Return the names of a file's columns, in its order."""
    import pyarrow.parquet as pq

    with storage.open(storage.relative(file.path)) as stream:
        return list(pq.read_schema(stream).names)


def csv_parts(storage: Storage, file: StagedFile) -> Iterator[bytes]:
    """Yield the rows of one file as CSV; the memory this takes does not grow with the file."""
    import pyarrow.csv

    for batch in parquet_parts(storage, storage.relative(file.path)):
        part = BytesIO()
        try:
            text = _as_text(batch)
        except (OverflowError, ValueError) as cause:
            # Of a version that did not judge values before it staged them.
            raise TransformError(
                "sink.row-refused",
                f"a nested value cannot be written as PostgreSQL's text: {cause}",
                where=file.path,
            ) from None
        pyarrow.csv.write_csv(text, part, pyarrow.csv.WriteOptions(include_header=False))
        yield part.getvalue()


def _as_text(batch: Any) -> Any:
    """Return the batch with those columns as text that Arrow's CSV cannot write, or writes differently."""
    import pyarrow as pa

    columns = []
    for column in batch.columns:
        kind = column.type
        if pa.types.is_binary(kind):
            columns.append(pa.array([None if v is None else f"\\x{v.hex()}" for v in column.to_pylist()]))
        elif pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
            columns.append(pa.array([None if v is None else _array(v) for v in column.to_pylist()]))
        elif pa.types.is_nested(kind):
            columns.append(pa.array([None if v is None else _json(v, kind) for v in column.to_pylist()]))
        else:
            columns.append(column)
    # A column of nothing but NULL has no type of its own.
    texts = [c.cast(pa.string()) if pa.types.is_null(c.type) else c for c in columns]
    return pa.RecordBatch.from_arrays(texts, names=batch.schema.names)


def _array(values: Sequence[Any]) -> str:
    """Write an array, every element quoted: https://www.postgresql.org/docs/current/arrays.html#ARRAYS-IO."""
    return "{" + ",".join("NULL" if value is None else _element(value) for value in values) + "}"


def _element(value: Any) -> str:
    text = f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _json(value: Any, kind: Any) -> str:
    return json.dumps(_plain(value, kind), ensure_ascii=False, allow_nan=False)


def _plain(value: Any, kind: Any) -> Any:
    """Return a value as Spark's to_json writes it; decimals and numbers that JSON lacks become exact text."""
    import pyarrow as pa

    if value is None or isinstance(value, bool | int | str):
        return value
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {str(_plain(key, kind.key_type)): _plain(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    assert isinstance(value, Decimal | date | datetime)
    return value.isoformat() if isinstance(value, date) else str(value)
