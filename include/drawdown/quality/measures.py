"""Measures a slice in one aggregate, for comparison with earlier and later slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, MapType, NumericType, TimestampNTZType, TimestampType

from drawdown.errors import SpecError
from drawdown.quality.json_values import plain
from drawdown.spec import Pipeline
from drawdown.spec.history import HistoryExpectation
from drawdown.values.nearest import did_you_mean

_TIMES = (TimestampType, TimestampNTZType, DateType)


def measure(slice: DataFrame, pipeline: Pipeline, rows: int) -> dict[str, Any]:
    """Return the measures that the pipeline's `history:` names, by ``HistoryExpectation.key``.

    volume: rows, as staged. null_rate: share of rows, 0 to 1. mean: of the values that are not NULL or
    NaN. distinct_count: distinct values that are not NULL. freshness: the greatest time, microseconds
    since 1970 UTC. None where there is no value. Only columns that a measure names are read.

    Raises:
        SpecError: ``history.unknown-column``, ``history.wrong-type``.
    """
    asked = {one.key: one for one in pipeline.quality.history}
    of_columns = {
        key: _aggregate(slice, one, one.column, pipeline) for key, one in asked.items() if one.column
    }
    measured: dict[str, Any] = {"volume": rows} if "volume" in asked else {}
    if of_columns:
        (row,) = slice.agg(*of_columns.values()).collect()
        measured |= {key: plain(row[at]) for at, key in enumerate(of_columns)}
    return measured


def _aggregate(slice: DataFrame, one: HistoryExpectation, name: str, pipeline: Pipeline) -> Column:
    kinds: dict[str, DataType] = {field.name: field.dataType for field in slice.schema}
    if name not in kinds:
        raise SpecError(
            "history.unknown-column",
            f"{one.id}: the sink has no column {name}",
            where=str(pipeline.folder / "quality.yaml"),
            do=did_you_mean(name, sorted(kinds)),
        )
    kind, column = kinds[name], F.col(name)
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
        f"{one.id}: {one.measure} does not work on {kind.simpleString()}",
        where=str(pipeline.folder / "quality.yaml"),
        do=_NEEDS[one.measure],
    )


_NEEDS = {
    "mean": "name a column of numbers",
    "freshness": "name a column of dates or times",
    "distinct_count": "name a column whose values can be compared",
}


def past_values(past: Sequence[dict[str, Any]], key: str) -> list[float]:
    """Return a measure's values in earlier slices, in the given order, without slices that lack it."""
    found = (measures.get(key) for measures in past)
    return [value for value in found if isinstance(value, int | float)]
