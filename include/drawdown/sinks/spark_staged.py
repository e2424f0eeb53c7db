"""Sinks whose rows wait in a folder apart from the target, until a publish copies them there.

Neither readers of the target nor a VACUUM see the files. A new sink of this sort implements `check_target`,
`bind_target` and `holds` in its stage.py and a Target in its publish.py; its kind's `staging` is "apart".
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from drawdown.errors import SpecError, TransformError
from drawdown.metastore.records import Checkpoint, StagedFile
from drawdown.sinks.spark_uncommitted import UncommittedFiles, UncommittedSink
from drawdown.sinks.staging_folder import staging_folder
from drawdown.sinks.upsert import refuse_duplicate_keys
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

_BATCH = "_dd_batch"


class StagedFilesSink(UncommittedSink):
    """What these sinks have in common. With keys, a batch may hold each key once."""

    def __init__(self, workspace: Workspace, pipeline: Pipeline) -> None:
        folder = staging_folder(pipeline)
        super().__init__(pipeline, UncommittedFiles(workspace.storage, folder, folder, "output"))
        self._project = workspace.project
        self._schema = StructType()
        self._keys = pipeline.sink.keys

    @abstractmethod
    def check_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        """See SinkStage.check."""

    @abstractmethod
    def bind_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        """See SinkStage.bind."""

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        self._refuse_nested_keys(schema)
        return self.check_target(schema, checkpoint)

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        identity = self.bind_target(schema, checkpoint)
        if checkpoint is None:
            self._storage.delete(staging_folder(self._pipeline))
        self._schema = schema
        return identity

    @property
    def based_on(self) -> int | None:
        return None

    def stage_in(self, place: str) -> None:
        """Stage in this place without partitions: each file then holds all columns, which a publish needs."""
        self._staging.open(place, self._schema.json(), [], {})

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        staged = super().write(frame, generation, batch_id)
        try:
            self.refuse_rows(staged, batch_id)
        except TransformError:
            self.remove(staged)
            raise
        return staged

    def refuse_rows(self, staged: Sequence[StagedFile], batch_id: int) -> None:
        """Raise TransformError when the target could not take these rows; the files are then removed."""
        refuse_duplicate_keys(self._storage, self._pipeline, staged, f"batch {batch_id}")

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        """See SinkStage.rows_of; with keys, the latest row of each key, as a publish takes it."""
        batches = sorted({batch_id for batch_id, _ in files})
        if len(batches) < 2 or not self._keys:
            return super().rows_of(session, schema, files)
        frames = [
            self._staging.rows(session, schema, [file for id, file in files if id == batch_id]).withColumn(
                _BATCH, F.lit(batch_id)
            )
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
