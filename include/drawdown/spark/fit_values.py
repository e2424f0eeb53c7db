"""The boundary of a sink: a value that it cannot keep ends the batch before any row of it is staged.

What a kind of sink keeps is data (`Keeps` in kinds.py). Judged later, by the publish, such a value would
block a slice that has passed, and every run behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DateType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from drawdown.spark.named_columns import named
from drawdown.spark.texts import any_inside, has_inside, no_text
from drawdown.spec import Sink
from drawdown.values.moments import YEARS

UNFIT_TEXT = "sink.unfit-text"
UNFIT_VALUE = "sink.unfit-value"
"""Mark Spark's message when `refusing_unfit` ends a batch; see query_failures.py."""

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_TIMES = (DateType, TimestampType, TimestampNTZType)


def refusing_unfit(frame: DataFrame, sink: Sink | None = None) -> DataFrame:
    """Return the same rows; a query that writes them fails at the first value that the sink cannot keep.

    Text must be UTF-8 for every sink: one other value makes a table unreadable for readers that use Arrow.

    Args:
        sink: None for the quarantine, which keeps every text.
    """
    checked: dict[str, Column] = {}
    for field in frame.schema.fields:
        column = named(field.name)
        for id, said, found in _unfit(field, column, sink):
            kept = checked.get(field.name, column)
            error = F.raise_error(F.lit(f"{id}: `{field.name}` {said}"))
            checked[field.name] = F.when(found, error).otherwise(kept)
    frame = frame.select(*[checked.get(name, named(name)).alias(name) for name in frame.columns])
    return frame if sink is None else _refusing_long_keys(frame, sink)


def _unfit(field: StructField, column: Column, sink: Sink | None) -> Iterator[tuple[str, str, Column]]:
    """Yield, for a column, the id of an error, what it says, and whether a value causes it."""
    kind = field.dataType
    if has_inside(kind, (StringType,)):
        yield UNFIT_TEXT, "holds text that is no UTF-8", no_text(column, kind)
    if sink is None:
        return
    keeps = sink.kind.keeps
    if not keeps.zero and has_inside(kind, (StringType,)):
        zero = any_inside(column, kind, (StringType,), lambda text: text.contains("\0"))
        yield UNFIT_TEXT, f"holds the character U+0000, which {sink.format} cannot keep", zero
    if keeps.years and has_inside(kind, _TIMES):
        yield UNFIT_VALUE, f"holds a time outside of the years {keeps.years}", _other_years(column, kind)
    if not keeps.empty_partitions and field.name in sink.partition_by and isinstance(kind, StringType):
        said = f"is an empty text or {_NULL_FOLDER}, which folders of partitions cannot tell from NULL"
        yield UNFIT_VALUE, said, F.coalesce(column.isin("", _NULL_FOLDER), F.lit(False))


def _other_years(column: Column, kind: DataType) -> Column:
    """Return whether a time lies outside of the years 1 to 9999; not inside a value, only before year 1."""
    days, micros = (-719_162, 2_932_896), YEARS
    earliest_only = isinstance(kind, _TIMES)

    def beyond(at: Column, bounds: tuple[int, int]) -> Column:
        return (at < bounds[0]) if earliest_only else (at < bounds[0]) | (at > bounds[1])

    dates = any_inside(column, kind, (DateType,), lambda at: beyond(F.unix_date(at), days))
    times = any_inside(
        column,
        kind,
        (TimestampType, TimestampNTZType),
        lambda at: beyond(F.unix_micros(at.cast("timestamp")), micros),
    )
    return dates | times


def _refusing_long_keys(frame: DataFrame, sink: Sink) -> DataFrame:
    """Return the same rows; a key that the table's index cannot take ends the query."""
    longest = sink.kind.keeps.key_bytes
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    texts = [key for key in sink.keys if isinstance(kinds.get(key), StringType | BinaryType)]
    if longest is None or not texts:
        return frame
    size = reduce(Column.__add__, (F.coalesce(F.octet_length(named(key)), F.lit(0)) for key in texts))
    said = f"{UNFIT_VALUE}: `{texts[0]}` is longer than the {longest} bytes of a key in the table's index"
    checked = F.when(size > longest, F.raise_error(F.lit(said))).otherwise(named(texts[0]))
    return frame.withColumn(texts[0], checked)
