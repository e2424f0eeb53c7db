"""The ledger: in the schema of each target table, one row a table with the last batch that readers see.

It is changed in the transaction that shows the rows, under a row lock: who comes second sees the first. The
row is found by the table's own oid (regclass): a table that is dropped and made again has none, one that was
dumped and restored together with its ledger keeps it.
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
    """A table's row: `binding` names the checkpoint's claim to the table; `app_id` and what it published."""

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
        """The table's row; None without one, or without table or ledger."""
        name = self._ledger.as_string(connection)
        if connection.execute("SELECT to_regclass(%s)", [name]).fetchone() == (None,):
            return None
        query = sql.SQL(
            "SELECT binding, app_id, last_batch, epoch FROM {} WHERE relation = to_regclass(%s) {}"
        ).format(self._ledger, sql.SQL("FOR UPDATE" if lock else ""))
        row = connection.execute(query, [self._relation(connection)]).fetchone()
        return None if row is None else Entry(*row)

    def claim(self, connection: Connection[Any]) -> str:
        """Bind the table, which is there and empty, to a new checkpoint; a new binding each time."""
        # CREATE TABLE IF NOT EXISTS can fail when two make it at once.
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
        """The last batch under this id, or -1. Raises RefusedError ``sink.missing`` without a row."""
        entry = self.entry(connection, lock=lock)
        if entry is None:
            raise self.missing()
        return entry.last_batch if entry.app_id == app_id else -1

    def advance(self, connection: Connection[Any], batch_ids: Sequence[int], commit: Commit) -> bool:
        """Lock the row and note these batches as published; False when all of them are already.

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
                f"batch {done} was published by another run meanwhile",
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
        """No publish under a smaller epoch is let through any more; waits for one that is under way."""
        connection.execute(
            sql.SQL("UPDATE {} SET epoch = greatest(epoch, %s) WHERE relation = to_regclass(%s)").format(
                self._ledger
            ),
            [epoch, self._relation(connection)],
        )

    def keeps_replays(self, connection: Connection[Any]) -> bool:
        """Whether it has the column for them, which one of an older Drawdown lacks."""
        query = (
            "SELECT 1 FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name = %s AND column_name = %s"
        )
        return connection.execute(query, [self.schema, LEDGER, _LATER_COLUMN]).fetchone() is not None

    def keep_replays(self, connection: Connection[Any]) -> None:
        """Add that column; in a transaction of its own, for which all tables of the schema wait."""
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} text").format(
                self._ledger, sql.Identifier(_LATER_COLUMN)
            )
        )

    def note_replay(self, connection: Connection[Any], change_id: str) -> None:
        """In the transaction that replaces an interval. Replays commit in turn: the last one is enough."""
        connection.execute(
            sql.SQL("UPDATE {} SET last_replay = %s WHERE relation = to_regclass(%s)").format(self._ledger),
            [change_id, self._relation(connection)],
        )

    def last_replay(self, connection: Connection[Any]) -> str | None:
        """The change of the last replay; waits for one that is under way."""
        if not self.keeps_replays(connection):
            return None
        query = sql.SQL("SELECT last_replay FROM {} WHERE relation = to_regclass(%s) FOR UPDATE")
        row = connection.execute(query.format(self._ledger), [self._relation(connection)]).fetchone()
        return None if row is None else row[0]

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    def missing(self) -> RefusedError:
        """The error of a checkpoint whose table or ledger is gone."""
        return RefusedError(
            "sink.missing",
            f"{self.schema}.{LEDGER} knows nothing of {self.name}: the table, or the ledger, was dropped and"
            " perhaps made again, and the checkpoint belongs to the old one",
            where=self.name,
            do="restore both from one backup; a new table beside the old checkpoint would lack all earlier"
            " rows",
        )

    @property
    def _ledger(self) -> sql.Identifier:
        return sql.Identifier(self.schema, LEDGER)

    def _relation(self, connection: Connection[Any]) -> str:
        return sql.Identifier(self.schema, self.table).as_string(connection)
