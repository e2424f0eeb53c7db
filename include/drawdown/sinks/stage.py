"""The stage of a sink: the engine's half of the one protocol; publishing is the other half.

    check()            before anything is made: the target may be ours, or the run is refused
    bind()             before the first row: the target is there
    write(frame, id)   a batch's rows, durable, idempotent per batch id; -> the files written
    rows_of(files)     the staged rows again, for the audit

Delta and the file formats do all of it, so do sinks whose rows wait apart from the target (spark_staged.py);
the others are handed each batch at once (spark_delivering.py).
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
        """The schema that the spec declares, in order, or None when it declares none."""

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        """Look whether the target may be this checkpoint's; creates nothing.

        Args:
            checkpoint: the active generation, or None before the first run.

        Returns:
            The target's identity, kept in the checkpoint's fingerprint; None while there is no target.

        Raises:
            RefusedError: it holds something else, or has been removed.
        """

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        """After `check`: make the target when it is not there; its identity."""

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        """Stage a batch's rows; the whole batch is executed by this one action.

        A batch that is in the target already is executed all the same, without writing: state and
        watermark of the batch come from its execution.
        """

    def holds(self, generation: int, batch_id: int) -> bool:
        """Whether readers see this batch already."""

    def remove(self, files: Sequence[StagedFile]) -> None:
        """Take away what an attempt staged that never was committed."""

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        """The rows that publishing these staged files would give, with the sink's columns.

        Args:
            files: with their batch ids, in the order of the batches.
        """


@runtime_checkable
class StagingSink(SinkStage, Protocol):
    """A sink whose runs stage files, each in a place of its own."""

    @property
    def places(self) -> str:
        """The folder that holds the places, relative to the storage root."""

    @property
    def staged_table(self) -> StagedTable:
        """Which table of the pipeline the files are for."""

    @property
    def based_on(self) -> int | None:
        """The version of the Delta table that may come to name staged files; None for other targets."""

    def stage_in(self, place: str) -> None:
        """After `bind`: from here on files are staged in this place."""


@runtime_checkable
class SelfStagingSink(SinkStage, Protocol):
    """A sink whose own writer names its files, so that only its log tells what of them counts."""

    def leftovers(self, known: Sequence[StagedFile], since_ms: int) -> list[str]:
        """What a dead run wrote without noting it: paths relative to the storage root.

        Args:
            known: the files that the metastore has noted.
            since_ms: when the first of the dead runs started, milliseconds since 1970 UTC.
        """


def sink_for(workspace: Workspace, pipeline: Pipeline) -> SinkStage:
    """The sink that a pipeline's spec declares."""
    stage: SinkStage = code_at(SINKS[pipeline.sink.format].stage(pipeline.sink))(workspace, pipeline)
    return stage
