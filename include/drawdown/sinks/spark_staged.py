"""Sinks whose rows wait in a folder apart from the target, until a publish has taken them there.

Neither readers of the target nor a VACUUM ever meet the files. Who adds such a sink
writes `check_target`, `bind_target` and `holds` here, a Target in publishing/, and names its format in
`spec.Sink.staged_apart`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

from drawdown.errors import SpecError, TransformError
from drawdown.metastore.records import Checkpoint, StagedFile, StagedTable
from drawdown.sinks.spark_uncommitted import UncommittedFiles, execute
from drawdown.sinks.staging_folder import staging_folder
from drawdown.sinks.upsert import refuse_duplicate_keys
from drawdown.spark.declared_schema import declared
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

_BATCH = "_dd_batch"


class StagedFilesSink(ABC):
    """What these sinks have in common; see Sink for the methods. With keys, a batch may hold each once."""

    def __init__(self, workspace: Workspace, pipeline: Pipeline) -> None:
        self._project = workspace.project
        self._pipeline = pipeline
        self._storage = workspace.storage
        folder = staging_folder(pipeline)
        self._staging = UncommittedFiles(self._storage, folder, folder, "output")
        self._schema = StructType()
        self._keys = pipeline.sink.keys

    @abstractmethod
    def check_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        """As Sink.check."""

    @abstractmethod
    def bind_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        """As Sink.bind."""

    @abstractmethod
    def holds(self, generation: int, batch_id: int) -> bool:
        """As Sink.holds."""

    def declared_schema(self) -> StructType | None:
        return declared(self._pipeline)

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
    def places(self) -> str:
        return self._staging.folder

    @property
    def staged_table(self) -> StagedTable:
        return "output"

    @property
    def based_on(self) -> int | None:
        return None

    def stage_in(self, place: str) -> None:
        """Not partitioned: each file then holds all columns, as a publish reads them."""
        self._staging.open(place, self._schema.json(), [], {})

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        if self.holds(generation, batch_id):
            # Published by an attempt that died before Spark's commit.
            execute(frame)
            return []
        staged = self._staging.write(frame)
        try:
            self.refuse_rows(staged, batch_id)
        except TransformError:
            self.remove(staged)
            raise
        return staged

    def refuse_rows(self, staged: Sequence[StagedFile], batch_id: int) -> None:
        """Raise TransformError when the target could not take these rows; they are removed then."""
        refuse_duplicate_keys(self._storage, self._pipeline, staged, f"batch {batch_id}")

    def remove(self, files: Sequence[StagedFile]) -> None:
        self._staging.remove(files)

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        """With keys the latest row of each, as a publish takes them."""
        batches = sorted({batch_id for batch_id, _ in files})
        if len(batches) < 2 or not self._keys:
            return self._staging.rows(session, schema, [file for _, file in files])
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
