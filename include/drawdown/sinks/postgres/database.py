"""Connections to the databases of project.yaml; their failures become errors with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from drawdown.errors import DrawdownError, RefusedError, SourceError, TransformError
from drawdown.metastore.connect import GONE_AFTER, SERVER_GIVES_UP
from drawdown.spec import Database

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 10
# Times are sent in UTC and ISO. Waiting for a lock has a limit. A client that freezes in a transaction, or
# whose machine is gone, loses its connection, else its locks would stay.
_SESSION = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "lock_timeout": "30s",
    "idle_in_transaction_session_timeout": "60s",
    **SERVER_GIVES_UP,
}


@contextmanager
def connected(
    database: Database, table: str, seconds: int = CONNECT_SECONDS
) -> Iterator[psycopg.Connection[Any]]:
    """Open a connection with one transaction: committed at the end, rolled back on an error.

    Args:
        table: named by errors.

    Raises:
        SourceError: ``sink.unreachable``, ``sink.locked``, ``sink.unwritable``: the same may be tried again.
        RefusedError: ``sink.forbidden``, ``sink.changed``.
        TransformError: ``sink.row-refused``: a row breaks a constraint of the table, or a type's bounds.
    """
    import psycopg

    where = f"{table} at {database.address}"
    try:
        with psycopg.connect(
            host=database.host,
            port=database.port,
            dbname=database.dbname,
            user=database.user,
            password=database.password.get_secret_value() if database.password else None,
            sslmode=database.sslmode,
            sslrootcert=database.sslrootcert,
            connect_timeout=seconds,
            **GONE_AFTER,
            application_name="drawdown",
            options=" ".join(f"-c {name}={value}" for name, value in _SESSION.items()),
        ) as connection:
            yield connection
    except psycopg.Error as cause:
        raise _own_error(cause, where) from None


def _own_error(cause: psycopg.Error, where: str) -> DrawdownError:
    """Classify a failure by https://www.postgresql.org/docs/current/errcodes-appendix.html.

    Without a sqlstate there was no connection.
    """
    state = cause.sqlstate or "08000"
    said = (str(cause.diag.message_primary or cause).strip().splitlines() or ["no reason given"])[0]
    if state[:2] in ("08", "28", "3D", "53", "57", "58", "25"):
        return SourceError(
            "sink.unreachable",
            f"the database of the sink refused or closed the connection: {said}",
            where=where,
            do="check that the server runs, and address and login in `databases:` of include/project.yaml,"
            " then run again: the staged rows are kept",
        )
    if state in ("55P03", "40P01", "40001"):
        return SourceError(
            "sink.locked",
            f"another session locks the sink's table or its ledger: {said}",
            where=where,
            do="see pg_stat_activity, then run again: the staged rows are kept",
        )
    if state == "42501":
        return RefusedError(
            "sink.forbidden",
            f"the sink's user lacks a right: {said}",
            where=where,
            do="grant it CREATE and USAGE on the schema, TEMPORARY on the database, and SELECT, INSERT,"
            " UPDATE, DELETE on the table and on drawdown_ledger",
        )
    if state[:2] in ("22", "23"):
        about = " ".join(filter(None, (cause.diag.message_detail, cause.diag.context))).splitlines()
        return TransformError(
            "sink.row-refused",
            f"the table does not take a row: {said}" + (f" ({about[0][:300]})" if about else ""),
            where=where,
            do="change the table's constraint, then run again: the staged rows are kept",
        )
    if state in ("42P01", "42703", "42804", "3F000", "42P10"):
        return RefusedError(
            "sink.changed",
            f"the sink's table has changed: {said}",
            where=where,
            do="restore the table's columns and constraints, then run again: the staged rows are kept",
        )
    do = "see the server's log, then run again: the staged rows are kept"
    return SourceError("sink.unwritable", f"the database said: {said}", where=where, do=do)
