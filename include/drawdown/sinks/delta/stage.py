"""Delta: files are written into the table's folder without a commit; a publish adds them to the log."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from drawdown.changes.protocol import transaction_id
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.metastore.records import Checkpoint, StagedTable
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.sinks.spark_uncommitted import UncommittedFiles, UncommittedSink
from drawdown.spark.declared_schema import refuse_drift
from drawdown.spark.session import option_text
from drawdown.spark.tables import know_table
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.workspace import Workspace


class DeltaSink(UncommittedSink):
    """A pipeline's Delta output, or its quarantine, which is staged and published the same way."""

    def __init__(
        self, project: Project, pipeline: Pipeline, table: StagedTable, partition_by: Sequence[str]
    ) -> None:
        uri = {"output": output_uri, "quarantine": quarantine_uri}[table](project, pipeline)
        self._table: StagedTable = table
        self._partition_by = list(partition_by)
        self._files = DeltaTableFiles(uri)
        storage = Storage.of(project)
        # Below the table's own folder, so that an append only has to name them.
        folder = storage.relative(uri)
        super().__init__(pipeline, UncommittedFiles(storage, f"{folder}/data", folder, table))

    @classmethod
    def output(cls, workspace: Workspace, pipeline: Pipeline) -> DeltaSink:
        """Return the sink of the spec."""
        return cls(workspace.project, pipeline, "output", pipeline.sink.partition_by)

    @classmethod
    def quarantine(cls, project: Project, pipeline: Pipeline) -> DeltaSink:
        """Return the table of the quarantined rows."""
        return cls(project, pipeline, "quarantine", ())

    def check(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        if not self._files.exists():
            self._refuse_strangers(checkpoint)
            return None
        if checkpoint is None and not self._files.is_empty:
            raise RefusedError(
                "sink.not-ours",
                f"the Delta table at the sink's path holds rows, and {self._pipeline.name} has never run",
                where=self._files.uri,
                do="give the pipeline another `sink.path`, or move the table away",
            )
        if checkpoint is None and self.holds(1, 0):
            name = self._pipeline.name
            raise RefusedError(
                "sink.not-ours",
                f"the Delta table of {name} is empty, and has taken batches of an earlier pipeline so named:"
                " it would skip new ones with their numbers",
                where=self._files.uri,
                do="delete the folder of the table; the first run makes a new one",
            )
        there = self._there()
        # `bind` adds columns that a declared schema gained, or that the quarantine of an older version lacks.
        grows = self._table == "quarantine" or self._pipeline.sink_schema_ddl is not None
        refuse_drift(
            expected=there,
            found=StructType([f for f in schema.fields if not grows or f.name in there.names]),
            expected_is=f"the Delta table {self._files.uri}",
            found_is=f"the sink schema of {self._pipeline.name}",
            do="keep the columns of the table, by name and type; a declared schema may have further ones",
        )
        return self._files.table_id

    def bind(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        if self.check(schema, checkpoint) is None:
            about = f"{self._table} of pipeline {self._pipeline.name}"
            self._files.create(schema.json(), self._partition_by, about, self._properties())
        elif later := [field.json() for field in schema.fields if field.name not in self._there().names]:
            self._files.add_columns(later)
        if self._table == "output" and self._pipeline.sink.table is not None and not self._pipeline.apart:
            know_table(SparkSession.active(), self._pipeline.sink.table, self._files.uri)
        return self._files.table_id

    def _there(self) -> StructType:
        return StructType.fromJson(json.loads(self._files.schema_json))

    def _properties(self) -> dict[str, str]:
        """Return the properties of a new table: its mode, for readers that stream it, and the user's."""
        # A swap reads the log of a shadow from its beginning.
        kept = {"delta.logRetentionDuration": "interval 3650 days"} if self._pipeline.apart else {}
        if self._table == "quarantine":
            return kept
        sink = self._pipeline.sink
        given = {name: option_text(value) for name, value in sink.options.items()}
        return {"drawdown.mode": sink.mode, **given, **kept}

    @property
    def based_on(self) -> int | None:
        return self._files.version

    def stage_in(self, place: str) -> None:
        self._staging.open(
            place, self._files.schema_json, self._files.partition_by, self._files.configuration
        )

    def holds(self, generation: int, batch_id: int) -> bool:
        app_id = transaction_id(self._pipeline.name_in_sink, generation, self._table)
        return batch_id <= self._files.published_version(app_id)

    def _refuse_strangers(self, checkpoint: Checkpoint | None) -> None:
        """Refuse a path without a table when it holds other files, or when a checkpoint expects a table."""
        if checkpoint is not None:
            raise RefusedError(
                "sink.missing",
                f"the checkpoint of {self._pipeline.name} belongs to a Delta table that no longer exists",
                where=self._files.uri,
                do="restore the table; a new one beside the old checkpoint would lack all earlier rows",
            )
        if any(True for _ in self._storage.walk(self._storage.relative(self._files.uri))):
            raise RefusedError(
                "sink.foreign",
                f"the sink folder of {self._pipeline.name} holds files, but no Delta table",
                where=self._files.uri,
                do="give the pipeline another `sink.path`, or empty the folder",
            )
