"""Sinks that receive each batch directly: nothing is staged or can be read back; delivery is at least once.

When an attempt dies before Spark's commit, the sink gets the batch again with the same rows and the same
token. Output counts are observed while the batch executes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.metastore.records import Checkpoint, StagedFile
from drawdown.sinks.batch_token import BatchToken
from drawdown.spark.declared_schema import declared
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


class DeliveringSink(ABC):
    """What Kafka, the user's own code, console and memory have in common; see Sink for the methods."""

    def __init__(self, workspace: Workspace, pipeline: Pipeline) -> None:
        self._project = workspace.project
        self._pipeline = pipeline

    def declared_schema(self) -> StructType | None:
        return declared(self._pipeline)

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        return self._pipeline.sink.target

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        self.check(schema, checkpoint)
        return self._pipeline.sink.target

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        self.deliver(frame, BatchToken(self._pipeline.name_in_sink, generation, batch_id))
        return []

    @abstractmethod
    def deliver(self, frame: DataFrame, token: BatchToken) -> None:
        """Hand over a batch; its query must be executed exactly once and completely."""

    def holds(self, generation: int, batch_id: int) -> bool:
        return False

    def remove(self, files: Sequence[StagedFile]) -> None:
        assert not files, "delivered rows cannot be undone"

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        return session.createDataFrame([], schema)


@contextmanager
def executed_once(frame: DataFrame) -> Iterator[DataFrame]:
    """Execute the batch completely and cache it, so that any number of actions run its query once.

    Each action on the batch's own frame would execute it again, and an action that stops early (``show``)
    would leave state uncommitted and rows uncounted.
    """
    kept = frame.persist()
    try:
        kept.count()
        yield kept
    finally:
        kept.unpersist()
