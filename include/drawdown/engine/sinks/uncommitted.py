"""Files written into a Delta table's folder without a commit: durable, counted, and seen by no reader."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.metastore.records import StagedFile, StagedTable
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.spec.pipeline import SHADOWS
from drawdown.storage import Storage


@dataclass(frozen=True)
class UncommittedFiles:
    """The staged files of one table of a pipeline, in the folder of a Delta table that exists."""

    storage: Storage
    folder: DeltaTableFiles
    table: StagedTable

    def write(self, frame: DataFrame) -> list[StagedFile]:
        """The rows as parquet files; the frame is executed whole by this one action."""
        session = frame.sparkSession
        jvm = session._jvm
        assert jvm is not None
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, self.folder.uri)
        # writeFiles is the half of a Delta write before its commit: files, statistics, invariants.
        actions = log.startTransaction().writeFiles(frame._jdf)
        added = [json.loads(actions.apply(i).json())["add"] for i in range(actions.size())]
        return [self._staged(add) for add in added]

    def remove(self, files: Sequence[StagedFile]) -> None:
        """Delete these files; one that is gone already is no error."""
        for file in files:
            self.storage.delete(self.storage.relative(file.path))

    def leftovers(self, known: Sequence[StagedFile], since_ms: int) -> list[str]:
        """Files newer than `since_ms` that neither `known` nor the table's log names; see Sink.leftovers."""
        kept = {file.path for file in known} | self.folder.referenced()
        root = self.storage.relative(self.folder.uri)
        return [
            info.relative
            for info in self.storage.walk(root)
            if info.name.endswith(".parquet") and "/_delta_log/" not in info.path
            # Shadows are written by rebuilds, and what of them is in use is in the log.
            if not info.relative.startswith(f"{root}/{SHADOWS}/")
            if info.mtime_ms >= since_ms and info.path not in kept
        ]

    def rows(self, session: SparkSession, schema: StructType, files: Sequence[StagedFile]) -> DataFrame:
        """The rows of these files, with the columns of `schema`."""
        if not files:
            return session.createDataFrame([], schema)
        paths = [file.path for file in files]
        frame = session.read.schema(schema).option("basePath", self.folder.uri).parquet(*paths)
        return frame.select(*[F.col(f"`{name}`") for name in schema.fieldNames()])

    def _staged(self, add: dict[str, object]) -> StagedFile:
        stats = json.loads(str(add.get("stats") or "{}"))
        path = f"{self.folder.uri}/{unquote(str(add['path']))}"
        return StagedFile(self.table, path, int(str(add["size"])), int(stats.get("numRecords", 0)), add)


def execute(frame: DataFrame) -> None:
    """Run a batch whose rows readers see already: its state and watermark come from its execution."""
    frame.write.format("noop").mode("overwrite").save()
