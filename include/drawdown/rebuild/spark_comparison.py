"""Two outputs compared: rows, keys, columns and a sample of what differs.

With a time column only rows are compared up to the newest time that both sides have, so being further ahead
does not count as a difference. Rows are compared by the columns with equal type on both sides, as multisets:
a row that occurs twice on one side only is a difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    MapType,
    NumericType,
    StructType,
    VariantType,
)

from drawdown.spec.samples import SampleGate
from drawdown.spec.sink import Sink
from drawdown.values.json_text import read_json

_SAMPLE = 20
_NET, _LIVE, _SHADOW = "_dd_net", "_dd_live", "_dd_shadow"
_NOT_GROUPED = (MapType, VariantType)
_NOT_ORDERED = (ArrayType, BinaryType, BooleanType, MapType, StructType, VariantType)


@dataclass(frozen=True)
class ComparedTable:
    """One Delta table, in one version or the newest."""

    session: SparkSession
    uri: str
    version: int | None = None

    @cached_property
    def rows(self) -> DataFrame:
        reader = self.session.read.format("delta")
        if self.version is not None:
            reader = reader.option("versionAsOf", self.version)
        return reader.load(self.uri)

    @property
    def types(self) -> dict[str, DataType]:
        return {field.name: field.dataType for field in self.rows.schema.fields}


def compare(live: ComparedTable, shadow: ComparedTable, sink: Sink, gate: SampleGate) -> dict[str, Any]:
    """Compare two tables; returns JSON-ready values.

    Returns:
        ``compared``: a sentence, which rows; ``columns``: added, removed, retyped; ``rows``: live, shadow;
        ``only_live``, ``only_shadow``: keys, or rows where there are none, that one side has alone;
        ``changed``: keys whose rows differ, None without keys; ``aggregates``: by column and side;
        ``sample``: at most 20 rows, of each what may be shown, its side and how many times that has it more.
    """
    was, now = live.types, shadow.types
    time_column = sink.time_column
    both = [name for name in was if now.get(name) == was[name]]
    rows, ground = _common_ground(live.rows, shadow.rows, time_column if time_column in both else None)
    differing = _differing(rows["live"], rows["shadow"], {name: was[name] for name in both})
    return {
        "compared": ground,
        "columns": {
            "added": [name for name in now if name not in was],
            "removed": [name for name in was if name not in now],
            "retyped": [name for name in was if name in now and name not in both],
        },
        "aggregates": {side: _aggregates(frame, both, was, gate) for side, frame in rows.items()},
        "rows": {side: frame.count() for side, frame in rows.items()},
        **_counts(differing, [key for key in sink.keys if key in both]),
        "sample": _sample(differing, gate),
    }


def _common_ground(
    live: DataFrame, shadow: DataFrame, time_column: str | None
) -> tuple[dict[str, DataFrame], str]:
    rows = {"live": live, "shadow": shadow}
    if time_column is None:
        return rows, "all rows"
    time = F.col(_quoted(time_column))
    newest = [frame.agg(F.max(time)).first() for frame in rows.values()]
    times = [row[0] for row in newest if row is not None and row[0] is not None]
    if len(times) < len(rows):
        return rows, "all rows: one side has none"
    until = min(times)
    within = {side: frame.where((time <= F.lit(until)) | time.isNull()) for side, frame in rows.items()}
    return within, f"rows with {time_column} up to {until.isoformat()}, the newest that both sides have"


def _differing(live: DataFrame, shadow: DataFrame, types: Mapping[str, DataType]) -> DataFrame:
    """Return each distinct row that one side has more often, and the difference: positive for live."""
    columns = [_comparable(name, kind) for name, kind in types.items()]
    plus, minus = F.lit(1).alias(_NET), F.lit(-1).alias(_NET)
    both = live.select(*columns, plus).unionAll(shadow.select(*columns, minus))
    names = [_quoted(name) for name in types]
    return both.groupBy(*names).agg(F.sum(_NET).alias(_NET)).where(F.col(_NET) != 0).persist()


def _counts(differing: DataFrame, keys: Sequence[str]) -> dict[str, int | None]:
    if keys:
        sides = [F.max(F.col(_NET) > 0).alias(_LIVE), F.max(F.col(_NET) < 0).alias(_SHADOW)]
        counted = differing.groupBy(*map(_quoted, keys)).agg(*sides).groupBy(_LIVE, _SHADOW).count()
        found = {(row[_LIVE], row[_SHADOW]): row["count"] for row in counted.collect()}
        return {
            "only_live": found.get((True, False), 0),
            "only_shadow": found.get((False, True), 0),
            "changed": found.get((True, True), 0),
        }
    net = F.col(_NET)
    [row] = differing.agg(
        F.sum(F.greatest(net, F.lit(0))).alias(_LIVE), F.sum(F.greatest(-net, F.lit(0))).alias(_SHADOW)
    ).collect()
    return {"only_live": int(row[_LIVE] or 0), "only_shadow": int(row[_SHADOW] or 0), "changed": None}


def _sample(differing: DataFrame, gate: SampleGate) -> list[dict[str, Any]]:
    names = [name for name in differing.columns if name != _NET]
    as_json = F.to_json(F.struct(*map(_quoted, names)), {"ignoreNullFields": "false"}).alias("row")
    shown = any(gate.shows(name) for name in names)
    found = differing.select(as_json, _NET).orderBy("row").limit(_SAMPLE).collect() if shown else []
    differing.unpersist()
    return [
        {
            "side": "live" if row[_NET] > 0 else "shadow",
            "times": abs(row[_NET]),
            "row": gate.row(read_json(row["row"])),
        }
        for row in found
    ]


def _aggregates(
    frame: DataFrame, names: Sequence[str], types: Mapping[str, DataType], gate: SampleGate
) -> dict[str, dict[str, Any]]:
    """By column: nulls, and as far as its type has them distinct (approximate), min, max and sum, as text.

    Minimum and maximum are row values, so they are computed only if these may be shown.
    """
    asked: dict[tuple[str, str], Column] = {}
    for name in names:
        column, kind = F.col(_quoted(name)), types[name]
        asked[name, "nulls"] = F.count(F.when(column.isNull(), F.lit(1)))
        if not isinstance(kind, _NOT_GROUPED):
            asked[name, "distinct"] = F.approx_count_distinct(column)
        if not isinstance(kind, _NOT_ORDERED) and gate.shows(name):
            asked[name, "min"], asked[name, "max"] = (of(column).cast("string") for of in (F.min, F.max))
        if isinstance(kind, NumericType):
            asked[name, "sum"] = F.sum(column).cast("string")
    if not asked:
        return {}
    [row] = frame.agg(*[each.alias(f"a{number}") for number, each in enumerate(asked.values())]).collect()
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for (name, what), value in zip(asked, row, strict=True):
        found[name][what] = value
    return found


def _comparable(name: str, kind: DataType) -> Column:
    column = F.col(_quoted(name))
    return F.to_json(F.struct(column)).alias(name) if isinstance(kind, _NOT_GROUPED) else column


def _quoted(name: str) -> str:
    return f"`{name}`"
