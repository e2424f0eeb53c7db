"""Run a pipeline's transform over bounded data, for replays and tests, without touching the live checkpoint.

It runs as a batch query if its operators allow it, else as a stream over a scratch checkpoint that is removed
afterwards (checks/bounded_way.py decides, and `drawdown plan` shows it). Both differ from a drain: neither
drops a row as late, because all rows arrive at once, and a batch query also returns the windows that are
still open at the end of the data. So give them more rows than the wanted interval on both sides, and keep the
part of the output that is in the interval. A stream ends at the watermark that it is given: timers up to it
fire although no row comes behind them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StructField, StructType

from drawdown.layout import scratch_of
from drawdown.query.carriers import with_watermark, write_carrier
from drawdown.query.checks.bounded_way import only_in_a_stream
from drawdown.query.checks.plan_tree import PlanNode
from drawdown.query.transforms import run_transform
from drawdown.sources.reader import read_static
from drawdown.spark.declared_schema import declared, in_declared_order
from drawdown.spark.foreach_batch import each_batch
from drawdown.spark.query_failures import from_spark
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

_BATCH = "_dd_batch"


@contextmanager
def bounded_output(
    session: SparkSession,
    project: Project,
    pipeline: Pipeline,
    frames: Mapping[str, DataFrame],
    *,
    until: datetime | None = None,
) -> Iterator[DataFrame]:
    """Yield the rows that the transform makes of these rows, readable until the context ends.

    Args:
        session: a `query_session` of the pipeline; the frames are of this session.
        frames: for each streaming source the rows fed to the transform, with the user's columns, not
            streaming. Static sources are read from the project, unless they are given too.
        until: the watermark at which a stream ends; None: that of its rows.

    Returns:
        The columns of the sink in its order; in update mode the last row of each key.

    Raises:
        TransformError, SpecError, SourceError: as a drain's query.
        RefusedError: the output does not fit the declared schema.
    """
    bounded = {
        **{n: read_static(session, project, pipeline, n) for n in pipeline.static_sources if n not in frames},
        **frames,
    }
    output = _transformed(session, pipeline, bounded)
    if not only_in_a_stream(PlanNode(output._jdf.queryExecution().analyzed())):
        yield output
        return
    storage = Storage.of(project)
    folder = scratch_of(pipeline.name, uuid.uuid4().hex)
    try:
        yield _Scratch(session, pipeline, storage, folder).streamed(bounded, until)
    finally:
        storage.delete(folder)


def _transformed(
    session: SparkSession,
    pipeline: Pipeline,
    frames: Mapping[str, DataFrame],
    carriers: Mapping[str, str] | None = None,
) -> DataFrame:
    marked = {
        name: with_watermark(session, frame, pipeline.sources[name], (carriers or {}).get(name))
        for name, frame in frames.items()
    }
    return in_declared_order(run_transform(session, pipeline, marked), declared(pipeline), pipeline)


@dataclass(frozen=True)
class _Scratch:
    """A folder for one stream over bounded rows: its input, checkpoint and output."""

    session: SparkSession
    pipeline: Pipeline
    storage: Storage
    folder: str

    def streamed(self, frames: Mapping[str, DataFrame], until: datetime | None) -> DataFrame:
        """Write the rows to files and run the transform as a stream over them until they are read."""
        streams = dict(frames)
        for name in self.pipeline.streaming_sources:
            path = self.storage.path(f"{self.folder}/{name}")
            frames[name].write.parquet(path)
            streams[name] = self.session.readStream.schema(frames[name].schema).parquet(path)
        carriers = {} if until is None else self._carriers(until)
        output = _transformed(self.session, self.pipeline, streams, carriers)
        self.storage.makedirs(f"{self.folder}/output")
        written = self.storage.path(f"{self.folder}/output")

        def write(batch: DataFrame, batch_id: int) -> None:
            batch.withColumn(_BATCH, F.lit(batch_id)).write.mode("append").parquet(written)

        self._run(output, write)
        schema = StructType([*output.schema.fields, StructField(_BATCH, IntegerType())])
        return last_of_keys(self.session.read.schema(schema).parquet(written), self.pipeline, _BATCH)

    def _run(self, output: DataFrame, write: Callable[[DataFrame, int], None]) -> None:
        writer = (
            output.writeStream.outputMode(self.pipeline.sink.mode)
            .queryName(self.folder.rpartition("/")[2])
            .trigger(availableNow=True)
            .option("checkpointLocation", self.storage.path(f"{self.folder}/checkpoint"))
        )
        with each_batch(writer, write):
            query = writer.start()
            try:
                query.awaitTermination()
            except PySparkException as cause:
                raise from_spark(self.pipeline, cause) from None
            finally:
                query.stop()

    def _carriers(self, until: datetime) -> dict[str, str]:
        """Write a row that brings its watermark to `until`, for each watermarked source; return paths."""
        paths = {}
        for name, source in self.pipeline.watermarked_sources.items():
            assert source.watermark is not None
            folder = f"{self.folder}/carried/{name}"
            write_carrier(self.storage, folder, "until", until + source.watermark.delay.delta)
            paths[name] = f"{self.storage.path(folder)}/*.json"
        return paths


def last_of_keys(rows: DataFrame, pipeline: Pipeline, number: str) -> DataFrame:
    """Return what a sink in the pipeline's mode would hold after these batches, without the batch numbers."""
    if pipeline.sink.mode == "append" or (pipeline.sink.mode == "update" and not pipeline.sink.keys):
        return rows.drop(number)
    keys = [F.col(f"`{key}`") for key in pipeline.sink.keys]
    newest = F.rank().over(Window.partitionBy(*keys).orderBy(F.col(number).desc()))
    return rows.withColumn("_dd_age", newest).where("_dd_age = 1").drop("_dd_age", number)
