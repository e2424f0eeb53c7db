"""Carriers: keep each source's watermark from run to run when sources get data in different runs.

Spark keeps only the global watermark in a checkpoint. With two watermarked sources of which only one
has new data in each run, the other counts as 1970 (WatermarkTracker, policy min), so no window ever
closes and state only grows. A carrier is a hidden one-row file stream, unioned into its source before
withWatermark, that repeats the greatest event time the source has ever shown; it is filtered out
right after withWatermark. Nothing of Spark's own is changed.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from drawdown.layout import carriers_of
from drawdown.spec import Pipeline, Source
from drawdown.storage import Storage
from drawdown.workspace import Generation

_FLAG = "_dd_carrier"
_TIME = "_dd_carried"
SUFFIX = "#carrier"


def carried_sources(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the sources that need a carrier: all watermarked ones, when there are at least two.

    A carrier is one more source in the checkpoint, so the answer may depend only on the spec.
    """
    watermarked = tuple(pipeline.watermarked_sources)
    return watermarked if len(watermarked) > 1 else ()


def carrier_folder(pipeline: Pipeline, generation: int, source: str) -> str:
    """Return the folder of a source's carriers, relative to the storage root."""
    return f"{carriers_of(pipeline.name, generation)}/{source}"


def carrier_files(storage: Storage, pipeline: Pipeline, generation: int, source: str) -> str:
    """Return the path pattern by which Spark reads a source's carriers.

    A pattern may match nothing, so a query can be analysed before the folder exists.
    """
    return f"{storage.path(carrier_folder(pipeline, generation, source))}/*.json"


def write_carriers(generation: Generation, run_id: str) -> None:
    """Write a carrier file per source for this run: WatermarkTracker starts empty in every session."""
    pipeline, storage = generation.pipeline, generation.storage
    maxima = generation.metastore.maxima(pipeline.name, generation.number)
    for source in carried_sources(pipeline):
        folder = carrier_folder(pipeline, generation.number, source)
        storage.makedirs(folder)
        if source in maxima:
            write_carrier(storage, folder, run_id, maxima[source])


def write_carrier(storage: Storage, folder: str, name: str, at: datetime) -> None:
    """Write a carrier with this event time into a folder."""
    stamp = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    storage.write_atomic(f"{folder}/{name}.json", json.dumps({_TIME: stamp}).encode())


def with_watermark(
    session: SparkSession, frame: DataFrame, source: Source, carrier_path: str | None
) -> DataFrame:
    """Return the frame with its declared watermark and the same columns.

    Args:
        carrier_path: the path of the source's carriers (`carrier_files`); None when the pipeline needs none.
    """
    if source.watermark is None:
        return frame
    column, delay = source.watermark.column, source.watermark.delay.text
    if carrier_path is None:
        return frame.withWatermark(column, delay)
    carriers = session.readStream.schema(f"{_TIME} TIMESTAMP").json(carrier_path)
    empty = [
        F.lit(None).cast(field.dataType).alias(field.name)
        if field.name.lower() != column.lower()
        else F.col(_TIME).cast(field.dataType).alias(field.name)
        for field in frame.schema.fields
    ]
    both = frame.withColumn(_FLAG, F.lit(False)).unionByName(
        carriers.select(*empty, F.lit(True).alias(_FLAG))
    )
    # Spark pushes a filter that does not name the event-time column below withWatermark, where it would drop
    # the carrier: this filter itself, or, as the carrier's other columns are null, a filter of the transform
    # or the `is not null` that Spark infers from a join's keys. Spark pushes nothing past a nondeterministic
    # filter (Optimizer: CombineFilters, PushPredicateThroughNonJoin); spark_partition_id() makes this one so.
    return (
        both.withWatermark(column, delay)
        .where(f"not ({_FLAG} and `{column}` is not null) and spark_partition_id() >= 0")
        .drop(_FLAG)
    )
