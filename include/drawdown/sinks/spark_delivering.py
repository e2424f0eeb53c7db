"""Sinks that a batch is handed to: nothing is staged, nothing can be read back, delivery is at least once.

A batch whose attempt dies before Spark's commit is handed over again, with the same rows and the same
token. Its output counts are observed in the batch's own execution.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.metastore.records import Checkpoint, StagedFile
from drawdown.sinks.token import BatchToken
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
        """Hand over a batch; its query must be executed once, and whole."""

    def holds(self, generation: int, batch_id: int) -> bool:
        return False

    def remove(self, files: Sequence[StagedFile]) -> None:
        assert not files, "what was delivered cannot be taken back"

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        return session.createDataFrame([], schema)


@contextmanager
def executed_once(frame: DataFrame) -> Iterator[DataFrame]:
    """The batch, executed whole and kept, so that any number of actions on it read the query once.

    Each action on a batch's own frame would execute it again, and one that stops early (``show``) would
    leave state uncommitted and rows uncounted.
    """
    kept = frame.persist()
    try:
        kept.count()
        yield kept
    finally:
        kept.unpersist()
