"""Rows as tests compare them: by column name, as multisets, every value in one canonical form.

Duplicates count: a row that was found twice and expected once is one unexpected row. Times are UTC, to the
microsecond. Everything is compared exactly, at every depth, except numbers of the types DOUBLE and FLOAT:
those are compared to 9 significant digits, because sums depend on the order of the rows.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drawdown.errors import SpecError
from drawdown.values.json_text import read_json
from drawdown.values.nearest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_SIGNIFICANT = 9
# By default, to_json writes times to the millisecond and leaves out NULL fields.
_EXACT = {
    "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
    "timestampNTZFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}

Row = tuple[str | None, ...]


@dataclass(frozen=True)
class Difference:
    """The missing and the unexpected rows of a table, in the order of ``columns``."""

    table: str
    columns: tuple[str, ...]
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected)


def difference(table: str, found: DataFrame | None, expected: Path | None) -> Difference:
    """Compare a table with the file of its expected rows, in the columns that the file names.

    Args:
        found: None when the table does not exist yet: it has no rows.
        expected: None when no row is expected; then all columns are shown.

    Raises:
        SpecError: ``test.expected-*``: the file cannot be read as rows of that table.
    """
    if found is None:
        rows = _plain_rows(expected) if expected else ((), Counter())
        return Difference(table, rows[0], tuple(rows[1].elements()), ())
    frame = expected_frame(found.sparkSession, expected, found.schema) if expected else None
    columns = tuple(frame.columns if frame is not None else found.columns)
    there = _canonical(found, columns)
    wanted = _canonical(frame, columns) if frame is not None else Counter[Row]()
    return Difference(table, columns, _ordered(wanted - there), _ordered(there - wanted))


def expected_frame(session: SparkSession, path: Path, schema: StructType) -> DataFrame:
    """Return rows of a .csv (with a header; an empty field is NULL) or .jsonl file, as columns of ``schema``.

    A column may be left out. Arrays and structs in csv are JSON; an array of text may be ``a|b``.

    Raises:
        SpecError: ``test.unknown-column``, ``test.wrong-value``, ``test.not-json``.
    """
    from pyspark.sql import functions as F

    text = _text_frame(session, path)
    for name in text.columns:
        if name not in schema.fieldNames():
            raise SpecError(
                "test.unknown-column",
                f"the table has no column {name!r}; {did_you_mean(name, schema.fieldNames())}",
                where=str(path),
                do="correct the header",
            )
    typed = {name: _typed(F.col(f"`{name}`"), schema[name].dataType) for name in text.columns}
    frame = text.select(*[column.alias(name) for name, column in typed.items()])
    _refuse_lost_values(path, text, typed, schema)
    return frame


def _text_frame(session: SparkSession, path: Path) -> DataFrame:
    """Return every column as text."""
    from pyspark.sql.types import StringType, StructField, StructType

    if path.suffix == ".csv":
        return session.read.csv(str(path), header=True, multiLine=True, escape='"')
    names, rows = _json_lines(path)
    schema = StructType([StructField(name, StringType()) for name in names])
    return session.createDataFrame([tuple(_as_text(row.get(n)) for n in names) for row in rows], schema)


def _json_lines(path: Path) -> tuple[list[str], list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = read_json(line)
        except ValueError as error:
            row = str(error)
        if not isinstance(row, dict):
            raise SpecError(
                "test.not-json",
                f"the line is not a JSON object: {line[:60]}",
                where=f"{path}:{number}",
                do="write one JSON object a line",
            )
        rows.append(row)
    return list(dict.fromkeys(name for row in rows for name in row)), rows


def _as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _typed(column: Column, kind: DataType) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if not isinstance(kind, ArrayType | MapType | StructType):
        return column.try_cast(kind)
    parsed = F.from_json(column, kind.simpleString())
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StringType):
        return F.when(column.startswith("["), parsed).otherwise(F.split(column, r"\|"))
    return parsed


def _refuse_lost_values(path: Path, text: DataFrame, typed: dict[str, Column], schema: StructType) -> None:
    """Refuse a value that does not fit its column's type: it would silently be compared as NULL."""
    from pyspark.sql import functions as F

    lost = [
        F.first(F.when(column.isNull(), F.col(f"`{name}`")), ignorenulls=True)
        for name, column in typed.items()
    ]
    if not lost:  # an empty jsonl names no column
        return
    # One job for all columns: most of its time is spent on starting it.
    [found] = text.select(*lost).collect()
    for name, value in zip(typed, found, strict=True):
        if value is not None:
            raise SpecError(
                "test.wrong-value",
                f"column {name}: {value!r} is no {schema[name].dataType.simpleString()}",
                where=str(path),
                do="correct the value; an empty field is NULL",
            )


def _canonical(frame: DataFrame, columns: tuple[str, ...]) -> Counter[Row]:
    from pyspark.sql import functions as F

    kinds = [frame.schema[name].dataType for name in columns]
    shown = [_shown(F.col(f"`{name}`"), kind).alias(name) for name, kind in zip(columns, kinds, strict=True)]
    rows = frame.select(*shown).collect()
    return Counter(
        tuple(_text_of(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows
    )


def _shown(column: Column, kind: DataType) -> Column:
    """Return a column as text, in the session's time zone (UTC)."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

    if isinstance(kind, ArrayType | MapType | StructType):
        return F.to_json(column, _EXACT)
    return F.hex(column) if isinstance(kind, BinaryType) else column.cast("string")


def _text_of(value: str | None, kind: DataType) -> str | None:
    """Return a value of `_shown` with floating-point numbers rounded and the keys of maps sorted."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if value is None or not isinstance(kind, ArrayType | MapType | StructType):
        leaf: str | None = _leaf(value, kind)
        return leaf
    # Numbers stay text, because a DECIMAL would lose digits.
    parsed = read_json(value, parse_float=str, parse_int=str, parse_constant=str)
    return json.dumps(_nested(parsed, kind), ensure_ascii=False)


def _nested(value: Any, kind: DataType) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_nested(each, kind.elementType) for each in value]
    if isinstance(kind, MapType):
        return {key: _nested(value[key], kind.valueType) for key in sorted(value)}
    if isinstance(kind, StructType):
        return {field.name: _nested(value.get(field.name), field.dataType) for field in kind}
    return _leaf(value, kind)


def _leaf(value: Any, kind: DataType) -> Any:
    from pyspark.sql.types import DoubleType, FloatType

    if value is None or not isinstance(kind, DoubleType | FloatType):
        return value
    return f"{float(value) + 0.0:.{_SIGNIFICANT}g}"  # -0.0 is 0.0


def _ordered(rows: Counter[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows.elements(), key=lambda row: tuple(value or "" for value in row)))


def _plain_rows(path: Path) -> tuple[tuple[str, ...], Counter[Row]]:
    """Return the expected rows as they are written, when no table gives them types."""
    import csv

    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            names, *rows = list(csv.reader(file)) or [[]]
        return tuple(names), Counter(tuple(value or None for value in row) for row in rows)
    columns, objects = _json_lines(path)
    return tuple(columns), Counter(tuple(_as_text(row.get(name)) for name in columns) for row in objects)
