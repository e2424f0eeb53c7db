"""The declared schema of a sink, and the error that names columns that differ from it."""

from __future__ import annotations

from pathlib import Path

from pyspark.errors import ParseException
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from drawdown.errors import RefusedError, SpecError
from drawdown.spark.named_columns import named
from drawdown.spec import Pipeline

_AGREE = "make the transform's columns and the declared schema agree (names and types, any order)"


def declared(pipeline: Pipeline) -> StructType | None:
    """Return the schema of the sink; None when the spec declares none.

    Raises:
        SpecError: the schema does not parse.
    """
    ddl = pipeline.sink_schema_ddl
    if ddl is None:
        return None
    file = pipeline.folder / (pipeline.sink.schema_file or "pipeline.yaml")
    return parse_ddl(ddl, f"the sink schema of {pipeline.name}", file)


def parse_ddl(ddl: str, what: str, file: Path | str) -> StructType:
    """Return a schema file's columns.

    Raises:
        SpecError: ``schema.unreadable`` with Spark's own sentence.
    """
    try:
        parsed = StructType.fromDDL(ddl)
        said = "it is a single type, not a list of columns"
    except ParseException as cause:
        parsed, said = None, str(cause).strip().splitlines()[0]
    if not isinstance(parsed, StructType):
        raise SpecError(
            "schema.unreadable",
            f"{what} is not DDL that Spark can read: {said}",
            where=str(file),
            do="write it as `name TYPE, name TYPE`, with Spark's type names",
        )
    return parsed


def in_declared_order(output: DataFrame, schema: StructType | None, pipeline: Pipeline) -> DataFrame:
    """Return a transform's output with columns in the order of the sink's schema, if there is one.

    Raises:
        RefusedError: ``sink.schema-drift``.
    """
    if schema is None:
        return output
    refuse_drift(
        expected=schema,
        found=output.schema,
        expected_is=f"the schema declared for the sink of {pipeline.name}",
        found_is=f"the output of {pipeline.transform}",
    )
    return output.select(*[named(name) for name in schema.fieldNames()])


def refuse_drift(
    expected: StructType, found: StructType, *, expected_is: str, found_is: str, do: str = _AGREE
) -> None:
    """Raise RefusedError ``sink.schema-drift`` that names every column that differs.

    Order and nullability may differ; names and types may not.
    """
    want, have = _types(expected), _types(found)
    problems = [f"`{n}` is missing" for n in want if n not in have]
    problems += [f"`{n}` is extra" for n in have if n not in want]
    problems += [
        f"`{n}` is {have[n].simpleString()} instead of {want[n].simpleString()}"
        for n in want
        if n in have and have[n].simpleString() != want[n].simpleString()
    ]
    if problems:
        raise RefusedError(
            "sink.schema-drift",
            f"{found_is} does not fit {expected_is}: {'; '.join(problems)}",
            do=do,
        )


def _types(schema: StructType) -> dict[str, DataType]:
    return {field.name: field.dataType for field in schema.fields}
