"""Columns by their names, whatever stands in a name: it may come from a supplier's file."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType


def quoted(name: str) -> str:
    """Return a name as SQL and DDL take it: one word, and no expression."""
    return "`" + name.replace("`", "``") + "`"


def named(*path: str) -> Column:
    """Return a column, or with several names a field of it."""
    return F.col(".".join(map(quoted, path)))


def ddl_of(schema: StructType) -> str:
    """Return the columns of a schema as DDL, for functions that take no other form."""
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema.fields)
