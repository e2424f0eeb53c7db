"""Files written beside a Delta table without a commit: durable, counted, and invisible to readers.

Each run stages into one folder of its own, its *place*, which is registered as a change before the first file
is written: files of a dead run are found by their place. The place is a Delta table with a first commit and
no other, because Delta's own writer returns each file's size, row count and statistics. A publish adds the
files to the log of the table that they are for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from urllib.parse import quote, unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.delta.table import UNFINDABLE, DeltaTableFiles
from drawdown.metastore.records import StagedFile, StagedTable
from drawdown.sinks.unnamed_files import remove_unnamed_of
from drawdown.spark.declared_schema import declared
from drawdown.spark.fit_values import refusing_unfit
from drawdown.spark.gateway import jvm_of
from drawdown.spark.named_columns import named
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.values.json_text import read_json


@dataclass
class UncommittedFiles:
    """The staged files of one table of a pipeline.

    Attributes:
        folder: holds the places of all runs, relative to the storage root.
        log_at: the folder that paths in Delta's actions are relative to: that of the table that a publish
            adds them to, relative to the storage root.
        place: the place of this run; None for a reader.
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
        """Stage rows with these columns in this place from now on."""
        self.place, self._like = place, (schema_json, partition_by, properties)

    def write(self, frame: DataFrame) -> list[StagedFile]:
        """Write the rows as parquet files; this one action executes the whole frame."""
        assert self.place is not None, "a run opens its place before it stages"
        table = DeltaTableFiles(self.storage.path(self.place))
        if not table.exists():
            schema_json, partition_by, properties = self._like
            table.create(schema_json, partition_by, "staged rows", properties)
        session = frame.sparkSession
        jvm = jvm_of(session)
        log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, table.uri)
        # writeFiles is the half of a Delta write before its commit: files, statistics, invariants.
        actions = log.startTransaction().writeFiles(frame._jdf)
        added = [read_json(actions.apply(i).json())["add"] for i in range(actions.size())]
        return [self._staged(self._escaped(add)) for add in added]

    def remove(self, files: Sequence[StagedFile]) -> None:
        """Delete these files, except those that the table names; a missing file is no error."""
        remove_unnamed_of(self.storage, self.storage.path(self.log_at), files)

    def rows(self, session: SparkSession, schema: StructType, files: Sequence[StagedFile]) -> DataFrame:
        """Return the rows of these files, with the columns of `schema`."""
        if not files:
            return session.createDataFrame([], schema)
        # Spark reads partition columns from folder names, below one base folder at a time.
        by_base: dict[str, list[str]] = defaultdict(list)
        for file in files:
            folders = len(file.action.get("partitionValues") or ())
            by_base[file.path.rsplit("/", folders + 1)[0]].append(file.path)
        frames = [
            session.read.schema(schema).option("basePath", base).parquet(*paths)
            for base, paths in by_base.items()
        ]
        return reduce(DataFrame.unionByName, frames).select(*[named(name) for name in schema.fieldNames()])

    def _escaped(self, add: dict[str, object]) -> dict[str, object]:
        """Return the action of a file in whose folders what delta-rs cannot find unescaped is escaped.

        Spark writes the partition `~` as ``v=~``. delta-rs then looks for ``v=%7E``, which means the same: it
        could neither compact the table nor replace an interval.
        """
        path = unquote(str(add["path"]))
        if not UNFINDABLE & set(path):
            return add
        found_at = "".join(f"%{ord(char):02X}" if char in UNFINDABLE else char for char in path)
        place = str(self.place)
        self.storage.copy(f"{place}/{path}", f"{place}/{found_at}")
        self.storage.delete(f"{place}/{path}")
        return {**add, "path": quote(found_at, safe="/=")}

    def _staged(self, add: dict[str, object]) -> StagedFile:
        assert self.place is not None
        stats = read_json(str(add.get("stats") or "{}"))
        path = f"{self.storage.path(self.place)}/{unquote(str(add['path']))}"
        # Only letters, digits and dashes, which a log does not escape.
        below = self.place.removeprefix(f"{self.log_at}/")
        action = {**add, "path": f"{below}/{add['path']}"}
        return StagedFile(self.table, path, int(str(add["size"])), int(stats.get("numRecords", 0)), action)


class UncommittedSink(ABC):
    """What sinks that stage such files have in common; see SinkStage for the methods."""

    def __init__(self, pipeline: Pipeline, staging: UncommittedFiles) -> None:
        self._pipeline = pipeline
        self._storage = staging.storage
        self._staging = staging

    @abstractmethod
    def holds(self, generation: int, batch_id: int) -> bool:
        """See SinkStage.holds."""

    def declared_schema(self) -> StructType | None:
        return declared(self._pipeline)

    @property
    def places(self) -> str:
        return self._staging.folder

    @property
    def staged_table(self) -> StagedTable:
        return self._staging.table

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        if self.holds(generation, batch_id):
            # An attempt that died before Spark's commit has published it.
            execute(frame)
            return []
        sink = self._pipeline.sink if self.staged_table == "output" else None
        return self._staging.write(refusing_unfit(frame, sink))

    def remove(self, files: Sequence[StagedFile]) -> None:
        self._staging.remove(files)

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        return self._staging.rows(session, schema, [file for _, file in files])


def execute(frame: DataFrame) -> None:
    """Execute a batch whose rows readers already see: its execution updates state and watermark."""
    frame.write.format("noop").mode("overwrite").save()
