"""The stage of a sink: the engine's half of the one protocol; publishing is the other half.

    check()            before anything is created: refuse a target that belongs to something else
    bind()             before the first row: create the target if it does not exist
    write(frame, id)   make a batch's rows durable, idempotent per batch id; -> the files written
    rows_of(files)     the staged rows again, for the audit

Delta, the file formats and sinks whose rows wait apart from the target (spark_staged.py) do all of it;
the others get each batch directly (spark_delivering.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.kinds import code_at
from drawdown.metastore.records import Checkpoint, StagedFile, StagedTable
from drawdown.sinks.registry import SINKS
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


class SinkStage(Protocol):
    """One pipeline's target."""

    def declared_schema(self) -> StructType | None:
        """Return the schema that the spec declares, in order; None when it declares none."""

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        """Check whether the target may belong to this checkpoint; creates nothing.

        Args:
            checkpoint: the active generation, or None before the first run.

        Returns:
            The target's identity, kept in the checkpoint's fingerprint; None without a target.

        Raises:
            RefusedError: the target holds something else, or was removed.
        """

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        """Create the target if it does not exist, after `check`, and return its identity."""

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        """Stage a batch's rows; this one action executes the whole batch.

        A batch that is already in the target is executed too, without writing: its execution updates state
        and watermark.
        """

    def holds(self, generation: int, batch_id: int) -> bool:
        """Whether readers already see this batch."""

    def remove(self, files: Sequence[StagedFile]) -> None:
        """Remove what an attempt staged and never committed."""

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        """Return the rows that a publish of these staged files would show, with the sink's columns.

        Args:
            files: with their batch ids, in the order of the batches.
        """


@runtime_checkable
class StagingSink(SinkStage, Protocol):
    """A sink whose runs stage files, each in a place of its own."""

    @property
    def places(self) -> str:
        """Return the folder that holds the places, relative to the storage root."""

    @property
    def staged_table(self) -> StagedTable:
        """Return which table of the pipeline the files are for."""

    @property
    def based_on(self) -> int | None:
        """Return the version of the Delta table that will name the staged files; None for other targets."""

    def stage_in(self, place: str) -> None:
        """Stage files in this place from now on; call `bind` first."""


@runtime_checkable
class SelfStagingSink(SinkStage, Protocol):
    """A sink whose own writer names its files, so that only its log shows which of them count."""

    def leftovers(self, known: Sequence[StagedFile], since_ms: int) -> list[str]:
        """Return files that a dead run wrote and did not record: paths relative to the storage root.

        Args:
            known: the files that the metastore has.
            since_ms: when the first of the dead runs started, milliseconds since 1970 UTC.
        """

    def forget(self, batch_id: int) -> None:
        """Take out of the sink's log a batch that this run has planned anew.

        A run that was overtaken has written it, of other rows, after a rewind had taken it back.
        """


def sink_for(workspace: Workspace, pipeline: Pipeline) -> SinkStage:
    """Return the sink that a pipeline's spec declares."""
    stage: SinkStage = code_at(SINKS[pipeline.sink.format].stage(pipeline.sink))(workspace, pipeline)
    return stage
