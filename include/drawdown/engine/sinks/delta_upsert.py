"""Delta in update mode: rows are staged apart from the table, and a publish merges them into it by key.

The staging place is a Delta table that never gets a commit but its first: writing there gives each file's
size and row count as for any Delta table, and neither readers nor VACUUM of the output ever meet the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from drawdown.engine.sinks.delta import DeltaSink
from drawdown.errors import SpecError, TransformError
from drawdown.metastore.records import Checkpoint, StagedFile, StagedTable
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.staging import staging_folder
from drawdown.publishing.upsert import duplicate_keys
from drawdown.spec import Pipeline, Project

_BATCH = "_dd_batch"


class DeltaUpsertSink(DeltaSink):
    """A Delta output whose rows are known by keys; a batch may hold each key once."""

    def __init__(
        self, project: Project, pipeline: Pipeline, table: StagedTable, partition_by: Sequence[str]
    ) -> None:
        super().__init__(project, pipeline, table, partition_by)
        self._folder = staging_folder(pipeline.name)
        self._staging = DeltaTableFiles(self._storage.path(self._folder))
        self._keys = pipeline.sink.keys

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        self._refuse_nested_keys(schema)
        return super().check(schema, checkpoint)

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        identity = super().bind(schema, checkpoint)
        if checkpoint is None:
            self._storage.delete(self._folder)
        if not self._staging.exists():
            # Not partitioned: each file then holds all columns, as a merge reads them.
            self._staging.create(schema.json(), [], f"staged rows of pipeline {self._pipeline.name}")
        return identity

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        staged = super().write(frame, generation, batch_id)
        count, some = duplicate_keys(self._storage, staged, self._keys)
        if count:
            self.remove(staged)
            raise TransformError(
                "sink.duplicate-keys",
                f"{count} key(s) of {self._pipeline.name} come more than once in batch {batch_id}"
                f" ({'; '.join(some)}): which row is the newest cannot be told",
                where=str(self._pipeline.folder / self._pipeline.transform),
                do="let the transform give one row per key (aggregate by the keys), or add a column to keys",
            )
        return staged

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        """The latest row of each key, as the merge takes them."""
        batches = sorted({batch_id for batch_id, _ in files})
        if len(batches) < 2:
            return super().rows_of(session, schema, files)
        frames = [
            super(DeltaUpsertSink, self)
            .rows_of(session, schema, [(id, file) for id, file in files if id == batch_id])
            .withColumn(_BATCH, F.lit(batch_id))
            for batch_id in batches
        ]
        newest = Window.partitionBy(*self._keys).orderBy(F.desc(_BATCH))
        numbered = reduce(DataFrame.unionAll, frames).withColumn("_dd_nth", F.row_number().over(newest))
        return numbered.where("_dd_nth = 1").drop("_dd_nth", _BATCH)

    def _refuse_nested_keys(self, schema: StructType) -> None:
        nested = [
            key
            for key in self._keys
            if isinstance(schema[key].dataType, ArrayType | MapType | StructType | VariantType)
        ]
        if nested:
            raise SpecError(
                "sink.nested-key",
                f"`{nested[0]}` is {schema[nested[0]].dataType.simpleString()}: a key must be a single value",
                where=str(self._pipeline.folder / "pipeline.yaml"),
                do="give its parts columns of their own in the transform, and name those in `keys:`",
            )
