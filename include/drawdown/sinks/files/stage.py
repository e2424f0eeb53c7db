"""File formats: Spark's native file sink with its `_spark_metadata`, called batch by batch.

FileStreamSink.addBatch is what Spark itself calls when a query writes files. Calling it inside foreachBatch
lets the file formats follow the same protocol: counts are recorded before Spark commits the batch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.checkpoint import SINK_FIELDS, FileLog, delete_with_checksum
from drawdown.errors import RefusedError
from drawdown.metastore.records import Checkpoint, StagedFile
from drawdown.sinks.locations import output_uri
from drawdown.spark.declared_schema import declared
from drawdown.spark.fit_values import refusing_unfit
from drawdown.spark.gateway import jvm_of
from drawdown.spark.named_columns import named
from drawdown.spark.session import option_text
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

_LOG = "_spark_metadata"


class NativeFileSink:
    """parquet, orc, json, csv or text files that Spark readers see exactly once."""

    def __init__(
        self,
        workspace: Workspace,
        pipeline: Pipeline,
    ) -> None:
        self._pipeline = pipeline
        self._metastore = workspace.metastore
        self._storage = workspace.storage
        self._uri = output_uri(workspace.project, pipeline)
        self._folder = self._storage.relative(self._uri)

    def declared_schema(self) -> StructType | None:
        return declared(self._pipeline)

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        has_files = any(True for _ in self._storage.walk(self._folder))
        if checkpoint is None and has_files:
            # The sink's log skips every batch id it has seen: rows of a new checkpoint would be lost.
            raise RefusedError(
                "sink.not-ours",
                f"the sink folder of {self._pipeline.name} holds files, and the pipeline has never run",
                where=self._uri,
                do="give the pipeline another `sink.path`, or move the files away",
            )
        if checkpoint is not None and not has_files and self._noted(checkpoint.generation):
            raise RefusedError(
                "sink.missing",
                f"the checkpoint of {self._pipeline.name} belongs to files that no longer exist",
                where=self._uri,
                do="restore the folder with its _spark_metadata",
            )
        return self._uri

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        self.check(schema, checkpoint)
        return self._uri

    def write(self, frame: DataFrame, generation: int, batch_id: int) -> list[StagedFile]:
        session = frame.sparkSession
        written = self._manifest(batch_id)
        if written is not None:
            # Already in the sink, by an attempt that died before Spark's commit; see SinkStage.write.
            frame.write.format("noop").mode("overwrite").save()
        else:
            self._java_sink(session).addBatch(batch_id, refusing_unfit(frame, self._pipeline.sink)._jdf)
            written = self._manifest(batch_id) or []
        earlier = self._noted(generation, before=batch_id) if self._is_compacted(batch_id) else set()
        return [
            StagedFile("output", path, int(entry["size"]), 0)
            for entry in written
            if (path := _plain(entry["path"])) not in earlier
        ]

    def holds(self, generation: int, batch_id: int) -> bool:
        return FileLog(self._storage, f"{self._folder}/{_LOG}", SINK_FIELDS).holds(batch_id)

    def remove(self, files: Sequence[StagedFile]) -> None:
        """Do nothing: files that the sink's log does not name are never read."""

    def leftovers(self, known: Sequence[StagedFile], since_ms: int) -> list[str]:
        # A run may die after Spark's sink logged a batch and before the metastore has it.
        log = FileLog(self._storage, f"{self._folder}/{_LOG}", SINK_FIELDS)
        logged = {file.path for file in known} | {_plain(entry["path"]) for entry in log.everything()}
        return [
            info.relative
            for info in self._storage.walk(self._folder)
            if info.name.startswith("part-") and f"/{_LOG}/" not in info.path
            if info.mtime_ms >= since_ms and info.path not in logged
        ]

    def forget(self, batch_id: int) -> None:
        # A compacted entry has all earlier batches, too: it stays.
        entry = f"{self._folder}/{_LOG}/{batch_id}"
        if self._storage.exists(entry):
            delete_with_checksum(self._storage, entry)

    def rows_of(
        self, session: SparkSession, schema: StructType, files: Sequence[tuple[int, StagedFile]]
    ) -> DataFrame:
        if not files:
            return session.createDataFrame([], schema)
        reader = session.read.format(self._pipeline.sink.format).schema(schema)
        reader = reader.options(**self._options()).option("basePath", self._uri)
        frame = reader.load([file.path for _, file in files])
        return frame.select(*[named(name) for name in schema.fieldNames()])

    def _java_sink(self, session: SparkSession) -> Any:
        jvm = jvm_of(session)
        empty = jvm.scala.Option.empty()
        options = {"path": self._uri, **self._options()}
        source = jvm.org.apache.spark.sql.execution.datasources.DataSource(
            session._jsparkSession,
            self._pipeline.sink.format,
            jvm.PythonUtils.toSeq([]),
            empty,
            jvm.PythonUtils.toSeq(list(self._pipeline.sink.partition_by)),
            empty,
            jvm.PythonUtils.toScalaMap(options),
            empty,
            empty,
        )
        return source.createSink(jvm.org.apache.spark.sql.streaming.OutputMode.Append())

    def _options(self) -> dict[str, str]:
        return {key: option_text(value) for key, value in self._pipeline.sink.options.items()}

    def _is_compacted(self, batch_id: int) -> bool:
        return self._storage.exists(f"{self._folder}/{_LOG}/{batch_id}.compact")

    def _manifest(self, batch_id: int) -> list[dict[str, Any]] | None:
        """Return the sink's log entries of a batch; a compacted entry repeats all earlier batches."""
        folder = PurePosixPath(self._folder) / _LOG
        for name in (f"{batch_id}.compact", str(batch_id)):
            path = str(folder / name)
            if self._storage.exists(path):
                lines = self._storage.read_bytes(path).decode().splitlines()[1:]
                return [entry for line in lines if line and (entry := json.loads(line))["action"] == "add"]
        return None

    def _noted(self, generation: int, before: int | None = None) -> set[str]:
        """Return the staged paths that the metastore has, of all batches or of those before one batch id."""
        batches = self._metastore.batches(self._pipeline.name, generation)
        ids = [b.batch_id for b in batches if before is None or b.batch_id < before]
        return {file.path for _, file in self._metastore.staged_files(self._pipeline.name, generation, ids)}


def _plain(uri: str) -> str:
    return unquote(uri.removeprefix("file://"))
