"""Text that is not UTF-8, at any depth of a column.

Spark does not check a STRING: CAST(binary AS STRING) keeps the bytes as they are, and files of other programs
may hold any bytes. One such value in a table makes it unreadable for every reader that uses Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from drawdown.spark.named_columns import named

UNFIT = "sink.unfit-text"
"""Marks Spark's message when `refusing_other_bytes` ends a batch; see query_failures.py."""

_REPLACED = "\ufffd"


def no_text(column: Column, kind: DataType) -> Column:
    """Return whether text in a column of this type holds bytes that are not UTF-8; never NULL."""
    return _any_text(column, kind, lambda text: ~F.is_valid_utf8(text))


def lossy(column: Column, kind: DataType) -> Column:
    """Return whether text in a column holds the character that replaces invalid UTF-8; never NULL."""
    return _any_text(column, kind, lambda text: text.contains(_REPLACED))


def refusing_other_bytes(frame: DataFrame) -> DataFrame:
    """Return the same rows; a query that writes them fails at the first text that is not UTF-8."""
    checked = {
        field.name: F.when(
            no_text(column, field.dataType),
            F.raise_error(F.lit(f"{UNFIT}: `{field.name}` holds text that is no UTF-8")),
        ).otherwise(column)
        for field in frame.schema.fields
        if _has_text(field.dataType)
        for column in [named(field.name)]
    }
    return frame.select(*[checked.get(name, named(name)).alias(name) for name in frame.columns])


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
