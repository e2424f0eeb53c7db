"""What every sink can do; see the package's page for the order in which it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.metastore.records import Checkpoint, StagedFile


class Sink(Protocol):
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

    def leftovers(self, known: Sequence[StagedFile], since_ms: int) -> list[str]:
        """What a dead run wrote without noting it: paths relative to the storage root.

        Args:
            known: the files that the metastore has noted.
            since_ms: when the first of the dead runs started, milliseconds since 1970 UTC.
        """

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        """The rows that publishing these staged files would give, with the sink's columns.

        Args:
            files: with their batch ids, in the order of the batches.
        """
