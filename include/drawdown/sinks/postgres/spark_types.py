"""Spark's types as PostgreSQL's; a type without a counterpart is refused before anything is created."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from drawdown.errors import SpecError
from drawdown.sinks.postgres.table import PostgresColumn
from drawdown.spec import Pipeline

# Spelled as format_type() spells them.
_TYPES: dict[type[DataType], str] = {
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    StringType: "text",
    BinaryType: "bytea",
    DateType: "date",
    TimestampType: "timestamp with time zone",
    TimestampNTZType: "timestamp without time zone",
}
_LONGEST_NAME = 63
_SYSTEM = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "_dd_batch"})


def columns(schema: StructType, pipeline: Pipeline) -> list[PostgresColumn]:
    """Return the columns of the table.

    Raises:
        SpecError: ``sink.unfit-column``: a name or type that PostgreSQL cannot have.
    """
    found = [PostgresColumn(field.name, _type(field.dataType) or "") for field in schema.fields]
    wrong = [
        f"`{c.name}` is {schema[c.name].dataType.simpleString()}, which has no type in PostgreSQL"
        for c in found
        if not c.type
    ]
    wrong += [f"`{c.name}` is a name of PostgreSQL's own" for c in found if c.name in _SYSTEM]
    wrong += [
        f"`{c.name}` is longer than {_LONGEST_NAME} bytes"
        for c in found
        if len(c.name.encode()) > _LONGEST_NAME
    ]
    if wrong:
        raise SpecError(
            "sink.unfit-column",
            f"the output of {pipeline.name} cannot be a PostgreSQL table: {'; '.join(wrong)}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="rename or cast it in the transform and in the declared schema",
        )
    return found


def _type(kind: DataType) -> str | None:
    """Return PostgreSQL's type; None for a type without a counterpart.

    Arrays of single values are arrays, other nested values JSON.
    """
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    if isinstance(kind, ArrayType) and not isinstance(kind.elementType, ArrayType | MapType | StructType):
        element = _type(kind.elementType)
        return element and f"{element}[]"
    if isinstance(kind, ArrayType | MapType | StructType):
        return "jsonb" if all(_type(part) for part in _parts(kind)) else None
    return _TYPES.get(type(kind))


def _parts(kind: ArrayType | MapType | StructType) -> list[DataType]:
    if isinstance(kind, ArrayType):
        return [kind.elementType]
    if isinstance(kind, MapType):
        return [kind.keyType, kind.valueType]
    return [field.dataType for field in kind.fields]
