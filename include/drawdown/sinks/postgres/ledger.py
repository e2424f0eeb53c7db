"""The ledger: a table in the target table's schema, with a row per table that holds its last visible batch.

It changes in the transaction that shows the rows, under a row lock: the second of two writers sees what the
first did. It keeps the greatest epoch of each lease under which somebody may write (the pipeline's own, that
of its replays, that of a rebuild), since each lease counts by itself.

The row is found by the table's own oid (regclass): a table that was dropped and created again has no row, a
table that was dumped and restored together with its ledger keeps it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from drawdown.changes.protocol import Commit
from drawdown.errors import RefusedError, SourceError
from drawdown.metastore.records import Change, Lease, lease_purpose
from drawdown.sinks.postgres.kind import LEDGER

_DDL = """
CREATE TABLE IF NOT EXISTS {ledger} (
  relation regclass PRIMARY KEY, binding text NOT NULL, app_id text, last_batch bigint NOT NULL,
  epoch bigint NOT NULL, updated_at timestamptz NOT NULL DEFAULT now(), last_replay text, epochs jsonb)
"""
_LATER_COLUMNS: Mapping[str, str] = {"last_replay": "text", "epochs": "jsonb"}
"""Columns that ledgers of older versions lack: the last replay, and the epochs of the leases beside the
pipeline's own, whose epoch is ``epoch``."""


@dataclass(frozen=True)
class Entry:
    """A table's row: `binding` ties the table to a checkpoint, the rest says what `app_id` published last.

    Attributes:
        epochs: the greatest epoch of each lease, by its purpose.
    """

    binding: str
    app_id: str | None
    last_batch: int
    epochs: Mapping[str, int]
    last_replay: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Entry:
        """Return the entry from a row as an object, which may lack later columns."""
        epochs = {"": row["epoch"], **(row.get("epochs") or {})}
        return cls(row["binding"], row["app_id"], row["last_batch"], epochs, row.get("last_replay"))


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
        query = sql.SQL("SELECT to_jsonb(own) FROM {} AS own WHERE relation = to_regclass(%s) {}").format(
            self._ledger, sql.SQL("FOR UPDATE" if lock else "")
        )
        row = connection.execute(query, [self._relation(connection)]).fetchone()
        return None if row is None else Entry.of(row[0])

    def claim(self, connection: Connection[Any]) -> str:
        """Bind the table, which exists and is empty, to a new checkpoint; return the new, unique binding."""
        # CREATE TABLE IF NOT EXISTS can fail when two sessions run it at once.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"{self.schema}.{LEDGER}"])
        connection.execute(sql.SQL(_DDL).format(ledger=self._ledger))
        self.bring_up_to_date(connection)
        binding = uuid.uuid4().hex
        connection.execute(
            sql.SQL(
                "INSERT INTO {} (relation, binding, last_batch, epoch) VALUES (to_regclass(%s), %s, -1, 0)"
                " ON CONFLICT (relation) DO UPDATE SET binding = excluded.binding, app_id = NULL,"
                " last_batch = -1, epoch = 0, updated_at = now(), last_replay = NULL, epochs = NULL"
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
        self._refuse_older(entry, commit.change)
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
                "UPDATE {} SET app_id = %s, last_batch = %s, updated_at = clock_timestamp()"
                " WHERE relation = to_regclass(%s)"
            ).format(self._ledger),
            [commit.app_id, commit.version, self._relation(connection)],
        )
        self._raise_epoch(connection, lease_purpose(commit.change.lease), commit.epoch)
        return True

    def fence(self, connection: Connection[Any], lease: Lease) -> None:
        """Refuse every later write under an older epoch of this lease; waits for one that is in progress."""
        self._raise_epoch(connection, lease_purpose(lease.name), lease.epoch)

    def note_replay(self, connection: Connection[Any], change: Change) -> None:
        """Record a replay, in the transaction that replaces its interval and has locked the row.

        Replays commit one after the other, so the last one is enough.

        Raises:
            RefusedError: ``lease.lost``: a newer holder of this lease has fenced it; ``sink.missing``.
        """
        entry = self.entry(connection, lock=True)
        if entry is None:
            raise self.missing()
        self._refuse_older(entry, change)
        connection.execute(
            sql.SQL("UPDATE {} SET last_replay = %s WHERE relation = to_regclass(%s)").format(self._ledger),
            [change.change_id, self._relation(connection)],
        )
        self._raise_epoch(connection, lease_purpose(change.lease), change.epoch)

    def last_replay(self, connection: Connection[Any]) -> str | None:
        """Return the change of the last replay; waits for a replay that is in progress."""
        entry = self.entry(connection, lock=True)
        return None if entry is None else entry.last_replay

    def is_up_to_date(self, connection: Connection[Any]) -> bool:
        """Whether the ledger, if there is one, has every column."""
        query = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        )
        names = {name for (name,) in connection.execute(query, [self.schema, LEDGER])}
        return not names or _LATER_COLUMNS.keys() <= names

    def bring_up_to_date(self, connection: Connection[Any]) -> None:
        """Add the columns that a ledger of an older version lacks, in a transaction of its own: all tables of
        the schema wait for it."""
        if self.is_up_to_date(connection):
            return
        for name, kind in _LATER_COLUMNS.items():
            connection.execute(
                sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} {}").format(
                    self._ledger, sql.Identifier(name), sql.SQL(kind)
                )
            )

    def _refuse_older(self, entry: Entry, change: Change) -> None:
        newest = entry.epochs.get(lease_purpose(change.lease), 0)
        if newest > change.epoch:
            raise RefusedError(
                "lease.lost",
                f"a run with a newer lease (epoch {newest}) has written into {self.name},"
                f" and this one has epoch {change.epoch}",
                where=self.name,
                do="nothing was published; run again",
            )

    def _raise_epoch(self, connection: Connection[Any], purpose: str, epoch: int) -> None:
        if not purpose:
            change = sql.SQL("epoch = greatest(epoch, {})").format(epoch)
        else:
            change = sql.SQL(
                "epochs = coalesce(epochs, '{{}}') || jsonb_build_object({0},"
                " greatest((epochs ->> {0})::bigint, {1}))"
            ).format(purpose, epoch)
        connection.execute(
            sql.SQL("UPDATE {} SET {} WHERE relation = to_regclass(%s)").format(self._ledger, change),
            [self._relation(connection)],
        )

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
