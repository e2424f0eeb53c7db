"""memory: keeps rows in the driver, to be read as ``global_temp.<pipeline>``. For tests.

The rows live as long as the Spark application. The checkpoint outlives them, so a later application holds
only later rows; in complete mode its first batch brings the whole result again.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from drawdown.metastore.records import Checkpoint
from drawdown.sinks.batch_token import BatchToken
from drawdown.sinks.spark_delivering import DeliveringSink
from drawdown.spec import Pipeline, Project

# By application, storage root and pipeline: rows by batch id; a repeated batch replaces itself.
_kept: dict[tuple[str, str, str], dict[int, list[Row]]] = {}


class MemorySink(DeliveringSink):
    """Append mode keeps every batch, complete mode the last."""

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        if checkpoint is None:
            session = SparkSession.active()
            _kept.pop(_key(session, self._project, self._pipeline), None)
        return super().bind(schema, checkpoint)

    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        session = frame.sparkSession
        batches = _kept.setdefault(_key(session, self._project, self._pipeline), {})
        rows = frame.collect()
        if self._pipeline.sink.mode == "complete":
            batches.clear()
        batches[token.batch_id] = rows
        everything = [row for id in sorted(batches) for row in batches[id]]
        session.createDataFrame(everything, frame.schema).createOrReplaceGlobalTempView(token.pipeline)


def kept(session: SparkSession, project: Project, pipeline: Pipeline) -> DataFrame | None:
    """Return the rows of a pipeline's memory sink; None before its first batch in this application."""
    known = _key(session, project, pipeline) in _kept
    return session.table(f"global_temp.{pipeline.name}") if known else None


def _key(session: SparkSession, project: Project, pipeline: Pipeline) -> tuple[str, str, str]:
    return str(session.sparkContext.applicationId), project.storage_root, pipeline.name
