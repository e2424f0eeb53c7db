"""The ledger: a table in the target table's schema, with a row per table that holds its last visible batch.

It changes in the transaction that shows the rows, under a row lock: the second of two writers sees what the
first did. The row is found by the table's own oid (regclass): a table that was dropped and created again has
no row, a table that was dumped and restored together with its ledger keeps it.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from drawdown.changes.protocol import Commit
from drawdown.errors import RefusedError, SourceError
from drawdown.sinks.postgres.kind import LEDGER

_DDL = """
CREATE TABLE IF NOT EXISTS {ledger} (
  relation regclass PRIMARY KEY, binding text NOT NULL, app_id text, last_batch bigint NOT NULL,
  epoch bigint NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(), last_replay text)
"""
_LATER_COLUMN = "last_replay"


@dataclass(frozen=True)
class Entry:
    """A table's row: `binding` ties the table to a checkpoint, the rest says what `app_id` published last."""

    binding: str
    app_id: str | None
    last_batch: int
    epoch: int


@dataclass(frozen=True)
class PostgresLedger:
    """The ledger of one table; every method works in the caller's transaction."""

    schema: str
    table: str

    def entry(self, connection: Connection[Any], *, lock: bool = False) -> Entry | None:
        """Return the table's row; None without a row, table or ledger."""
        name = self._ledger.as_string(connection)
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
            return None
        query = sql.SQL(
            "SELECT binding, app_id, last_batch, epoch FROM {} WHERE relation = to_regclass(%s) {}"
        ).format(self._ledger, sql.SQL("FOR UPDATE" if lock else ""))
        row = connection.execute(query, [self._relation(connection)]).fetchone()
        return None if row is None else Entry(*row)

    def claim(self, connection: Connection[Any]) -> str:
        """Bind the table, which exists and is empty, to a new checkpoint; return the new, unique binding."""
        # CREATE TABLE IF NOT EXISTS can fail when two sessions run it at once.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"{self.schema}.{LEDGER}"])
        connection.execute(sql.SQL(_DDL).format(ledger=self._ledger))
        binding = uuid.uuid4().hex
        connection.execute(
            sql.SQL(
                "INSERT INTO {} (relation, binding, last_batch, epoch) VALUES (to_regclass(%s), %s, -1, 0)"
                " ON CONFLICT (relation) DO UPDATE SET binding = excluded.binding, app_id = NULL,"
                " last_batch = -1, epoch = 0, updated_at = now()"
            ).format(self._ledger),
            [self._relation(connection), binding],
        )
        return binding

    def published_batch(self, connection: Connection[Any], app_id: str, *, lock: bool = False) -> int:
        """Return the last batch under this id, or -1. Raises RefusedError ``sink.missing`` without a row."""
        entry = self.entry(connection, lock=lock)
        if entry is None:
            raise self.missing()
        return entry.last_batch if entry.app_id == app_id else -1

    def advance(self, connection: Connection[Any], batch_ids: Sequence[int], commit: Commit) -> bool:
        """Lock the row and record these batches as published; return False when all of them were before.

        Raises:
            RefusedError: ``lease.lost``: a newer holder has published; ``sink.missing``.
            SourceError: ``sink.overtaken``: some of them are published already, by another holder.
        """
        entry = self.entry(connection, lock=True)
        if entry is None:
            raise self.missing()
        if entry.epoch > commit.epoch:
            raise RefusedError(
                "lease.lost",
                f"a run with a newer lease (epoch {entry.epoch}) has published into {self.name},"
                f" and this one has epoch {commit.epoch}",
                where=self.name,
                do="nothing was published; run again",
            )
        done = entry.last_batch if entry.app_id == commit.app_id else -1
        if done >= commit.version:
            return False
        if done >= min(batch_ids):
            raise SourceError(
                "sink.overtaken",
                f"batch {done} was published by another run in the meantime",
                where=self.name,
                do="run again: the rest follows",
            )
        connection.execute(
            sql.SQL(
                "UPDATE {} SET app_id = %s, last_batch = %s, epoch = %s, updated_at = clock_timestamp()"
                " WHERE relation = to_regclass(%s)"
            ).format(self._ledger),
            [commit.app_id, commit.version, commit.epoch, self._relation(connection)],
        )
        return True

    def fence(self, connection: Connection[Any], epoch: int) -> None:
        """Refuse every later publish under a smaller epoch; waits for a publish that is in progress."""
        connection.execute(
            sql.SQL("UPDATE {} SET epoch = greatest(epoch, %s) WHERE relation = to_regclass(%s)").format(
                self._ledger
            ),
            [epoch, self._relation(connection)],
        )

    def keeps_replays(self, connection: Connection[Any]) -> bool:
        """Whether the ledger has the column for replays, which ledgers of older versions lack."""
        query = (
            "SELECT 1 FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s AND column_name = %s"
        )
        return connection.execute(query, [self.schema, LEDGER, _LATER_COLUMN]).fetchone() is not None

    def keep_replays(self, connection: Connection[Any]) -> None:
        """Add the column for replays, in a transaction of its own: all tables of the schema wait for it."""
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} text").format(
                self._ledger, sql.Identifier(_LATER_COLUMN)
            )
        )

    def note_replay(self, connection: Connection[Any], change_id: str) -> None:
        """Record a replay, in the transaction that replaces its interval.

        Replays commit one after the other, so the last one is enough.
        """
        connection.execute(
            sql.SQL("UPDATE {} SET last_replay = %s WHERE relation = to_regclass(%s)").format(self._ledger),
            [change_id, self._relation(connection)],
        )

    def last_replay(self, connection: Connection[Any]) -> str | None:
        """Return the change of the last replay; waits for a replay that is in progress."""
        if not self.keeps_replays(connection):
            return None
        query = sql.SQL("SELECT last_replay FROM {} WHERE relation = to_regclass(%s) FOR UPDATE")
        row = connection.execute(query.format(self._ledger), [self._relation(connection)]).fetchone()
        return None if row is None else row[0]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    def missing(self) -> RefusedError:
        """Return the error for a checkpoint whose table or ledger is missing."""
        return RefusedError(
            "sink.missing",
            f"{self.schema}.{LEDGER} has no entry for {self.name}: the table or the ledger was dropped (and"
            " perhaps recreated), but the checkpoint belongs to the old one",
            where=self.name,
            do="restore both from one backup; a new table beside the old checkpoint would lack all earlier"
            " rows",
        )

    @property
    def _ledger(self) -> sql.Identifier:
        return sql.Identifier(self.schema, LEDGER)

    def _relation(self, connection: Connection[Any]) -> str:
        return sql.Identifier(self.schema, self.table).as_string(connection)
