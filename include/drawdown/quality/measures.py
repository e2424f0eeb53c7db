"""What a slice is measured by, to be compared with slices before and after it: one aggregate over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, MapType, NumericType, TimestampNTZType, TimestampType

from drawdown.errors import SpecError
from drawdown.quality.plain import plain
from drawdown.spec import Pipeline
from drawdown.spec.history import HistoryExpectation
from drawdown.values.nearest import did_you_mean

_TIMES = (TimestampType, TimestampNTZType, DateType)


def measure(slice: DataFrame, pipeline: Pipeline, rows: int) -> dict[str, Any]:
    """The measures that the pipeline's `history:` names, by ``HistoryExpectation.key``.

    volume: rows, as staged. null_rate: share of rows, 0 to 1. mean: of the values that are not NULL or
    NaN. distinct_count: distinct values that are not NULL. freshness: the greatest time, microseconds
    since 1970 UTC. None where there is no value. Columns are read only where a measure names them.

    Raises:
        SpecError: ``history.unknown-column``, ``history.wrong-type``.
    """
    asked = {one.key: one for one in pipeline.quality.history}
    of_columns = {key: _aggregate(slice, one, pipeline) for key, one in asked.items() if one.column}
    measured: dict[str, Any] = {"volume": rows} if "volume" in asked else {}
    if of_columns:
        (row,) = slice.agg(*of_columns.values()).collect()
        measured |= {key: plain(row[at]) for at, key in enumerate(of_columns)}
    return measured


def _aggregate(slice: DataFrame, one: HistoryExpectation, pipeline: Pipeline) -> Column:
    assert one.column is not None
    kinds: dict[str, DataType] = {field.name: field.dataType for field in slice.schema}
    if one.column not in kinds:
        raise SpecError(
            "history.unknown-column",
            f"{one.id}: the sink has no column {one.column}",
            where=str(pipeline.folder / "quality.yaml"),
            do=did_you_mean(one.column, sorted(kinds)),
        )
    kind, column = kinds[one.column], F.col(one.column)
    match one.measure:
        case "mean" if isinstance(kind, NumericType):
            number = column.cast("double")
            return F.avg(F.when(~F.isnan(number), number))
        case "freshness" if isinstance(kind, _TIMES):
            return F.unix_micros(F.max(column).cast("timestamp"))
        case "distinct_count" if not isinstance(kind, MapType):
            return F.count_distinct(column)
        case "null_rate":
            return F.avg(F.when(column.isNull(), 1.0).otherwise(0.0))
    raise SpecError(
        "history.wrong-type",
        f"{one.id}: there is no {one.measure} of {kind.simpleString()}",
        where=str(pipeline.folder / "quality.yaml"),
        do=_NEEDS[one.measure],
    )


_NEEDS = {
    "mean": "name a column of numbers",
    "freshness": "name a column of dates or times",
    "distinct_count": "name a column whose values can be compared",
}


def past_values(past: Sequence[dict[str, Any]], key: str) -> list[float]:
    """The values of a measure in earlier slices, as given; slices that did not have it are left out."""
    found = (measures.get(key) for measures in past)
    return [value for value in found if isinstance(value, int | float)]
