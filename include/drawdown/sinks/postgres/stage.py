"""PostgreSQL: rows wait as files, and a publish copies them into the table together with the ledger's row."""

from __future__ import annotations

from pyspark.sql.types import StructType

from drawdown.changes.protocol import transaction_id
from drawdown.errors import RefusedError
from drawdown.metastore.records import Checkpoint
from drawdown.sinks.postgres.database import connected
from drawdown.sinks.postgres.ledger import PostgresLedger
from drawdown.sinks.postgres.spark_types import columns
from drawdown.sinks.postgres.table import PostgresTable
from drawdown.sinks.spark_staged import StagedFilesSink
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


class PostgresSink(StagedFilesSink):
    """A table that this sink creates, or an existing one with the declared columns."""

    def __init__(self, workspace: Workspace, pipeline: Pipeline) -> None:
        super().__init__(workspace, pipeline)
        self._database = workspace.project.databases[pipeline.sink.database]
        self._table = PostgresTable.of(str(pipeline.sink.table))
        self._ledger = PostgresLedger(self._table.schema, self._table.table)

    def check_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        wanted, sink, table = columns(schema, self._pipeline), self._pipeline.sink, self._table
        with connected(self._database, table.name) as connection:
            table.refuse_server(connection, self._keys)
            entry = self._ledger.entry(connection) if table.exists(connection) else None
            if checkpoint is not None and entry is None:
                raise self._ledger.missing()
            if not table.exists(connection):
                return None
            table.refuse_rights(connection, sink.mode, replays=self._pipeline.replay is not None)
            table.refuse_drift(connection, wanted)
            if self._keys:
                table.refuse_keys(connection, self._keys)
            if checkpoint is None and not table.is_empty(connection):
                raise RefusedError(
                    "sink.not-ours",
                    f"the table {table.name} holds rows, and {self._pipeline.name} has never run",
                    where=f"{table.name} at {self._database.address}",
                    do="give the pipeline another `sink.table`, or move the table away",
                )
            return entry.binding if entry else None

    def bind_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        self.check_target(schema, checkpoint)
        with connected(self._database, self._table.name) as connection:
            if not self._table.exists(connection):
                self._table.create(connection, columns(schema, self._pipeline), self._keys)
            entry = self._ledger.entry(connection)
            if checkpoint is None or entry is None:
                return self._ledger.claim(connection)
            return entry.binding

    def holds(self, generation: int, batch_id: int) -> bool:
        app_id = transaction_id(self._pipeline.name_in_sink, generation, "output")
        with connected(self._database, self._table.name) as connection:
            return batch_id <= self._ledger.published_batch(connection, app_id)
