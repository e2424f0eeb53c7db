"""Publish staged rows in a PostgreSQL table: COPY and the ledger's row in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from psycopg import Connection, sql

from drawdown.changes.protocol import Commit, NewRows, Staged
from drawdown.fault_points import durable
from drawdown.metastore.records import Change, Lease, StagedFile, lease_purpose
from drawdown.sinks.postgres.copy import columns_of, csv_parts
from drawdown.sinks.postgres.database import connected
from drawdown.sinks.postgres.ledger import PostgresLedger
from drawdown.sinks.postgres.table import PostgresTable
from drawdown.spec import Database, Pipeline, Project
from drawdown.spec.sink import OutputMode
from drawdown.storage import Storage

_STAGING = sql.Identifier("pg_temp", "_dd_staging")
_BATCH = sql.Identifier("_dd_batch")


@dataclass(frozen=True)
class PostgresTarget:
    """A table that takes batches in one output mode; see Target and Replaceable for the methods.

    The ledger fences. It is locked after the rows were sent: a holder that freezes while it sends them keeps
    no lock that its successor waits for, and finds the successor's epoch when it wakes up. The lease is
    checked under that lock.
    """

    storage: Storage
    database: Database
    table: PostgresTable
    mode: OutputMode = "append"
    keys: Sequence[str] = ()
    based_on: ClassVar[None] = None

    def published_batch(self, app_id: str) -> int:
        with connected(self.database, self.table.name) as connection:
            return self._ledger.published_batch(connection, app_id)

    def begun_batch(self, app_id: str) -> int:
        """Wait for a publish in progress, then return the last batch: a slow holder can commit none later."""
        with connected(self.database, self.table.name) as connection:
            return self._ledger.published_batch(connection, app_id, lock=True)

    def make_visible(self, staged: Staged, commit: Commit) -> None:
        with self._transaction(commit.change.lease) as connection:
            if self.mode == "append":
                self._copy(connection, staged.files, self.table.identifier)
                columns: list[str] = []
            else:
                columns = self._stage(connection, staged)
            if not self._ledger.advance(connection, staged.batch_ids, commit):
                connection.rollback()
                return
            if self.mode == "complete":
                connection.execute(sql.SQL("DELETE FROM {}").format(self.table.identifier))
            if columns:
                self._move(connection, columns)
            commit.still_ours()

    def holds(self, change: Change, app_id: str) -> bool:
        if change.kind == "replay":
            with connected(self.database, self.table.name) as connection:
                return self._ledger.last_replay(connection) == change.change_id
        batches: list[int] = change.scope.get("batches", [])
        return bool(batches) and self.begun_batch(app_id) >= max(batches)

    def fence(self, lease: Lease) -> None:
        with self._transaction(lease.name) as connection:
            self._ledger.fence(connection, lease)

    def replace(self, new: NewRows) -> bool:
        """Replace an interval; rows are sent before the ledger is locked, so that publishes wait less."""
        with self._transaction(new.lease) as connection:
            columns = self._stage(connection, Staged([0], [(0, file) for file in new.files]))
            if new.overtaken(self._ledger.published_batch(connection, new.app_id, lock=True)):
                connection.rollback()
                return False
            change = new.begin(None)
            connection.execute(
                sql.SQL("DELETE FROM {0} WHERE {1} >= %s AND {1} < %s").format(
                    self.table.identifier, sql.Identifier(new.column)
                ),
                [new.interval.start, new.interval.end],
            )
            if columns:
                self._move(connection, columns)
            self._ledger.note_replay(connection, change)
        return True

    @contextmanager
    def _transaction(self, lease: str) -> Iterator[Connection[Any]]:
        """Open a transaction under a lease; those beside the pipeline's own need columns that an older ledger
        lacks."""
        if lease_purpose(lease):
            with connected(self.database, self.table.name) as connection:
                self._ledger.bring_up_to_date(connection)
        with connected(self.database, self.table.name) as connection:
            yield connection

    @property
    def _ledger(self) -> PostgresLedger:
        return PostgresLedger(self.table.schema, self.table.table)

    def _stage(self, connection: Connection[Any], staged: Staged) -> list[str]:
        """Copy rows, with their batch ids, into a temporary table; return the names of the columns."""
        last = staged.batch_ids[-1]
        files = [(id, file) for id, file in staged.files if self.mode != "complete" or id == last]
        if not files:
            return []
        # Files that were staged before a column was added lack it.
        columns = list(dict.fromkeys(name for _, file in files for name in columns_of(self.storage, file)))
        connection.execute(
            sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS SELECT {} FROM {} LIMIT 0").format(
                sql.Identifier("_dd_staging"), _list(columns), self.table.identifier
            )
        )
        connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {} bigint").format(_STAGING, _BATCH))
        for batch_id in sorted({id for id, _ in files}):
            # The column's default supplies the batch id, which the files do not have.
            connection.execute(
                sql.SQL("ALTER TABLE {} ALTER COLUMN {} SET DEFAULT {}").format(
                    _STAGING, _BATCH, sql.Literal(batch_id)
                )
            )
            self._copy(connection, [each for each in files if each[0] == batch_id], _STAGING)
        return columns

    def _copy(
        self, connection: Connection[Any], files: Sequence[tuple[int, StagedFile]], into: sql.Identifier
    ) -> None:
        for _, file in files:
            if not file.rows:
                continue
            columns = _list(columns_of(self.storage, file))
            command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(into, columns)
            with durable("publish.copy"), connection.cursor().copy(command) as copy:
                for part in csv_parts(self.storage, file):
                    copy.write(part)

    def _move(self, connection: Connection[Any], columns: Sequence[str]) -> None:
        """Move rows from the staging table into the target; with keys, the latest row of each."""
        names = _list(columns)
        insert = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
        if not self.keys:
            connection.execute(insert.format(self.table.identifier, names, names, _STAGING))
            return
        keys = _list(self.keys)
        rest = [sql.Identifier(name) for name in columns if name not in self.keys]
        values = [sql.SQL("{0} = excluded.{0}").format(name) for name in rest]
        update = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(values)) if rest else sql.SQL("NOTHING")
        latest = sql.SQL("SELECT DISTINCT ON ({}) {} FROM {} ORDER BY {}, {} DESC").format(
            keys, names, _STAGING, keys, _BATCH
        )
        connection.execute(
            sql.SQL("INSERT INTO {} ({}) {} ON CONFLICT ({}) DO {}").format(
                self.table.identifier, names, latest, keys, update
            )
        )


def _list(names: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def output_target(project: Project, pipeline: Pipeline, keys: Sequence[str]) -> PostgresTarget:
    """Return the target of the pipeline's sink."""
    sink = pipeline.sink
    storage, database = Storage.of(project), project.databases[sink.database]
    return PostgresTarget(storage, database, PostgresTable.of(str(sink.table)), sink.mode, keys)
