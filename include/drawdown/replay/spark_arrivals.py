"""Finds the batch of the live query with which each row of a replay arrived.

In update mode without state the live query writes a key again with every batch that brings it, and the sink
keeps the last one. A replay has all rows at once, so it computes them batch by batch, in the same order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from drawdown.brokers.offsets import Partition, flat
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch
from drawdown.rows.row_fates import file_path
from drawdown.sources.replay_basis import ReplayBasis
from drawdown.sources.spark_system_columns import ARRIVED, ORIGIN
from drawdown.spark.named_columns import named
from drawdown.spec import Pipeline

ARRIVAL = "_dd_arrival"

# For rows whose batch is unknown.
_UNKNOWN = 0


def with_arrival(
    frame: DataFrame, metastore: Metastore, pipeline: Pipeline, basis: ReplayBasis, name: str
) -> DataFrame:
    """Add ARRIVAL to a frame of `DecidedRows.obeyed`: a greater number means a later batch.

    Rows of batches whose records were pruned share one number, between those of the batches around them. All
    rows of another source, such as a Delta table read as of a version, have the same number.
    """
    batches = [
        batch
        for batch in metastore.batches(pipeline.name, basis.checkpoint.generation)
        if batch.batch_id <= basis.batch.batch_id
    ]
    number = basis.past.source_order.index(name)
    by_decision = 2 * (F.col(ARRIVED) + 1)
    source = pipeline.sources[name]
    rows: list[tuple[Any, ...]]
    if source.format == "kafka":
        rows, schema = list(_of_offsets(batches, number)), "t STRING, p INT, first BIGINT, behind BIGINT"
        origin = F.col(ORIGIN)
        on = (F.col("t") == origin.topic) & (F.col("p") == origin.partition)
        on &= (origin.offset >= F.col("first")) & (origin.offset < F.col("behind"))
    elif source.is_files:
        rows, schema = list(_of_files(batches, number, basis, name)), "f STRING"
        on = F.col("f") == file_path()
    else:
        return frame.withColumn(ARRIVAL, F.coalesce(by_decision, F.lit(_UNKNOWN)))
    return _joined(frame, rows, schema, on, by_decision)


def _joined(
    frame: DataFrame, rows: list[tuple[Any, ...]], schema: str, on: Column, by_decision: Column
) -> DataFrame:
    known = frame.sparkSession.createDataFrame(rows, f"{schema}, {ARRIVAL}_ BIGINT")
    columns = [named(name) for name in frame.columns]
    arrival = F.coalesce(by_decision, F.col(f"{ARRIVAL}_"), F.lit(_UNKNOWN)).alias(ARRIVAL)
    return frame.join(F.broadcast(known), on, "left").select(*columns, arrival)


def _of_files(batches: list[Batch], number: int, basis: ReplayBasis, name: str) -> Iterator[tuple[str, int]]:
    """Each entry of Spark's log of files is of one batch."""
    ends = [(batch.offsets_to[number] or {}).get("logOffset", -1) for batch in batches]
    for file in basis.past.read_files(name):
        place = bisect_left(ends, file.log_offset)
        if place < len(batches):
            yield file.path, _number(batches[place], file.log_offset > _log_offset(batches[place], number))


def _log_offset(batch: Batch, number: int) -> int:
    """Where the batch began."""
    before = batch.offsets_from[number] if batch.offsets_from else None
    return int((before or {}).get("logOffset", -1))


def _of_offsets(batches: list[Batch], number: int) -> Iterator[tuple[str, int, int, int, int]]:
    ranges: dict[Partition, list[tuple[int, int, int]]] = {}
    for batch in batches:
        before = flat(batch.offsets_from[number]) if batch.offsets_from else {}
        for at, end in flat(batch.offsets_to[number]).items():
            of = ranges.setdefault(at, [])
            if of and end < of[-1][1]:
                # The topic was recreated.
                of.clear()
            known = of[-1][1] if of else 0
            first = max(before.get(at, known), known)
            of += [(known, first, _number(batch, False)), (first, end, _number(batch, True))]
    for (topic, partition), found in ranges.items():
        yield from ((topic, partition, *each) for each in found)


def _number(batch: Batch, own: bool) -> int:
    """Of a batch's own rows, or of those between it and the last batch before it that is known."""
    return 2 * (batch.batch_id + 1) - (0 if own else 1)
