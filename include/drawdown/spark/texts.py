"""Text that is not UTF-8, at any depth of a column.

Spark does not check a STRING: CAST(binary AS STRING) keeps the bytes as they are, and files of other programs
may hold any bytes. One such value in a table makes it unreadable for every reader that uses Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

Kinds = tuple[type[DataType], ...]
_REPLACED = "\ufffd"


def no_text(column: Column, kind: DataType) -> Column:
    """Return whether text in a column of this type holds bytes that are not UTF-8; never NULL."""
    return any_inside(column, kind, (StringType,), lambda text: ~F.is_valid_utf8(text))


def lossy(column: Column, kind: DataType) -> Column:
    """Return whether text in a column holds the character that replaces invalid UTF-8; never NULL."""
    return any_inside(column, kind, (StringType,), lambda text: text.contains(_REPLACED))


def has_inside(kind: DataType, wanted: Kinds) -> bool:
    """Whether a type is one of these, or has one at any depth."""
    if isinstance(kind, StructType):
        return any(has_inside(field.dataType, wanted) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return has_inside(kind.elementType, wanted)
    if isinstance(kind, MapType):
        return has_inside(kind.keyType, wanted) or has_inside(kind.valueType, wanted)
    return isinstance(kind, wanted)


def any_inside(column: Column, kind: DataType, wanted: Kinds, holds: Callable[[Column], Column]) -> Column:
    """Return whether a condition holds for any value of these types, at any depth of a column; never NULL."""
    if not has_inside(kind, wanted):
        return F.lit(False)
    if isinstance(kind, StructType):
        found = [any_inside(column.getField(f.name), f.dataType, wanted, holds) for f in kind.fields]
        return reduce(Column.__or__, found)
    if isinstance(kind, ArrayType):
        found_in = F.exists(column, lambda each: any_inside(each, kind.elementType, wanted, holds))
        return F.coalesce(found_in, F.lit(False))
    if isinstance(kind, MapType):
        keys, values = F.map_keys(column), F.map_values(column)
        return any_inside(keys, ArrayType(kind.keyType), wanted, holds) | any_inside(
            values, ArrayType(kind.valueType), wanted, holds
        )
    return F.coalesce(holds(column), F.lit(False))
