"""Text that is no UTF-8, wherever in a column it is.

Spark checks no STRING: CAST(binary AS STRING) gives whatever the bytes are, and a file of another program may
hold any. Written into a table, one such value makes it unreadable for every reader of Arrow's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

UNFIT = "sink.unfit-text"
"""Stands in what Spark says when `refusing_other_bytes` ends a batch; see failures.py."""

_REPLACED = "\ufffd"


def no_text(column: Column, kind: DataType) -> Column:
    """Whether text in a column of this type holds bytes that are no UTF-8; never NULL."""
    return _any_text(column, kind, lambda text: ~F.is_valid_utf8(text))


def lossy(column: Column, kind: DataType) -> Column:
    """Whether text in a column holds what stands in place of bytes that are no UTF-8; never NULL."""
    return _any_text(column, kind, lambda text: text.contains(_REPLACED))


def refusing_other_bytes(frame: DataFrame) -> DataFrame:
    """The same rows; a query that writes them fails at the first text that is no UTF-8."""
    checked = {
        field.name: F.when(
            no_text(column, field.dataType),
            F.raise_error(F.lit(f"{UNFIT}: `{field.name}` holds text that is no UTF-8")),
        ).otherwise(column)
        for field in frame.schema.fields
        if _has_text(field.dataType)
        for column in [_named(field.name)]
    }
    return frame.select(*[checked.get(name, _named(name)).alias(name) for name in frame.columns])


def _named(column: str) -> Column:
    return F.col("`" + column.replace("`", "``") + "`")


def _has_text(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_text(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_text(kind.elementType)
    if isinstance(kind, MapType):
        return _has_text(kind.keyType) or _has_text(kind.valueType)
    return isinstance(kind, StringType)


def _any_text(column: Column, kind: DataType, holds: Callable[[Column], Column]) -> Column:
    if not _has_text(kind):
        return F.lit(False)
    if isinstance(kind, StructType):
        found = [_any_text(column.getField(f.name), f.dataType, holds) for f in kind.fields]
        return reduce(Column.__or__, found)
    if isinstance(kind, ArrayType):
        return F.coalesce(
            F.exists(column, lambda each: _any_text(each, kind.elementType, holds)), F.lit(False)
        )
    if isinstance(kind, MapType):
        keys, values = F.map_keys(column), F.map_values(column)
        return _any_text(keys, ArrayType(kind.keyType), holds) | _any_text(
            values, ArrayType(kind.valueType), holds
        )
    return F.coalesce(holds(column), F.lit(False))
