"""Files written beside a Delta table without a commit: durable, counted, and seen by no reader.

All that a run stages is in one folder of its own, its *place*, which the register of changes has before the
first file is written: what a dead run leaves is known by where it is. The place is a Delta table that never
gets a commit but its first, because Delta's own writer gives each file's size, row count and statistics; a
publish takes the files over into the log of the table that they are for.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import StagedFile, StagedTable
from drawdown.spark.texts import refusing_other_bytes
from drawdown.storage import Storage


@dataclass
class UncommittedFiles:
    """The staged files of one table of a pipeline.

    Attributes:
        folder: holds the places of all runs, relative to the storage root.
        log_at: what the paths of Delta's actions are relative to: the folder of the table that a publish adds
            them to, relative to the storage root.
        place: of this run; None for who only looks.
    """

    storage: Storage
    folder: str
    log_at: str
    table: StagedTable
    place: str | None = None
    _like: tuple[str, Sequence[str], dict[str, str]] = field(default=("", (), {}))

    def open(
        self, place: str, schema_json: str, partition_by: Sequence[str], properties: dict[str, str]
    ) -> None:
        """From here on rows with these columns are staged in this place."""
        self.place, self._like = place, (schema_json, partition_by, properties)

    def write(self, frame: DataFrame) -> list[StagedFile]:
        """The rows as parquet files; the frame is executed whole by this one action."""
        assert self.place is not None, "a run opens its place before it stages"
        table = DeltaTableFiles(self.storage.path(self.place))
        if not table.exists():
            schema_json, partition_by, properties = self._like
            table.create(schema_json, partition_by, "staged rows", properties)
        session = frame.sparkSession
        jvm = session._jvm
        assert jvm is not None
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, table.uri)
        # writeFiles is the half of a Delta write before its commit: files, statistics, invariants.
        actions = log.startTransaction().writeFiles(refusing_other_bytes(frame)._jdf)
        added = [json.loads(actions.apply(i).json())["add"] for i in range(actions.size())]
        return [self._staged(add) for add in added]

    def remove(self, files: Sequence[StagedFile]) -> None:
        """Delete these files; one that is gone already is no error."""
        for file in files:
            self.storage.delete(self.storage.relative(file.path))

    def rows(self, session: SparkSession, schema: StructType, files: Sequence[StagedFile]) -> DataFrame:
        """The rows of these files, with the columns of `schema`."""
        if not files:
            return session.createDataFrame([], schema)
        # Spark takes partition columns from folder names, below one folder at a time.
        by_base: dict[str, list[str]] = defaultdict(list)
        for file in files:
            folders = len(file.action.get("partitionValues") or ())
            by_base[file.path.rsplit("/", folders + 1)[0]].append(file.path)
        frames = [
            session.read.schema(schema).option("basePath", base).parquet(*paths)
            for base, paths in by_base.items()
        ]
        return reduce(DataFrame.unionByName, frames).select(
            *[F.col(f"`{name}`") for name in schema.fieldNames()]
        )

    def _staged(self, add: dict[str, object]) -> StagedFile:
        assert self.place is not None
        stats = json.loads(str(add.get("stats") or "{}"))
        path = f"{self.storage.path(self.place)}/{unquote(str(add['path']))}"
        # Only letters, digits and dashes: nothing that a log would escape.
        below = self.place.removeprefix(f"{self.log_at}/")
        action = {**add, "path": f"{below}/{add['path']}"}
        return StagedFile(self.table, path, int(str(add["size"])), int(stats.get("numRecords", 0)), action)


def execute(frame: DataFrame) -> None:
    """Run a batch whose rows readers see already: its state and watermark come from its execution."""
    frame.write.format("noop").mode("overwrite").save()
