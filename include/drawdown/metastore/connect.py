"""Make an SQLAlchemy engine from a metastore URL; its failures become Drawdown's own errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError

from drawdown.errors import DrawdownError, MachineError, SourceError, SpecError

WAIT_SECONDS = 15
"""How long a statement waits for another process's lock (SQLite: busy timeout, PostgreSQL: lock_timeout)."""

WRITES = {"drawdown_begin": "BEGIN IMMEDIATE"}
"""Execution options for transactions that take the write lock at their start (SQLite)."""

GONE_AFTER: Mapping[str, Any] = {
    # Milliseconds without an acknowledgement of what was sent.
    "tcp_user_timeout": 60_000,
    # Seconds: for a connection that only waits for an answer.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 10,
}
"""Parameters of libpq: a server whose host or network is gone is given up after 60 s.

Without them TCP sends again for a quarter of an hour, and who only waits for an answer waits for two hours. A
network that is away for half a minute costs a wait: TCP waits twice as long before each further try, so what
was sent again after 25 s is sent again after 51 s, and not in between. A busy server acknowledges, and
is waited for.
"""

SERVER_GIVES_UP: Mapping[str, str] = {
    "tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
}  # fmt: skip
"""Settings of a session: the server ends it when the client's host is gone, with its locks."""

_CONNECTIONS_MORE = 30
"""Connections beyond the five that the pool keeps. Each pipeline of a group may need three at once: for its
lease, for a transaction that waits for a lock, and for reads inside it."""

NO_TRANSACTION = {"drawdown_begin": ""}
"""Execution options for statements that SQLite only allows outside transactions."""


def connect(url: str) -> Engine:
    """Return the engine for ``url`` (sqlite:///FILE or postgresql://...).

    Creates a SQLite file's missing folder. Only the first statement opens the file or contacts the server.
    Raises SpecError metastore.url.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed)
    else:
        # pre-ping: after a restart of the server between two batches, a run reconnects instead of failing.
        engine = create_engine(
            _waiting(parsed, connect_timeout=WAIT_SECONDS, **GONE_AFTER).set(drivername="postgresql+psycopg"),
            pool_pre_ping=True,
            hide_parameters=True,
            max_overflow=_CONNECTIONS_MORE,
        )
        event.listen(engine, "connect", _bound_waits)
    place = shown(parsed)
    event.listen(engine, "handle_error", lambda context: _as_own_error(context, place), retval=True)
    return engine


def shown(url: URL) -> str:
    """Return the address for errors, without password and query, either of which can hold a secret."""
    return url.set(query={}).render_as_string(hide_password=True)


def _parse(url: str) -> URL:
    do = "set metastore in include/project.yaml to sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE"
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The text itself is not shown: it may hold a password.
        raise SpecError("metastore.url", "the metastore's address is not a URL", do=do) from None
    backend = parsed.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise SpecError(
            "metastore.url", f"{backend} is not supported as metastore", where=shown(parsed), do=do
        )
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise SpecError(
            "metastore.url", "a database in memory is lost after each process", where=shown(parsed), do=do
        )
    return parsed


def _sqlite(url: URL) -> Engine:
    folder = Path(str(url.database)).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as e:
        raise MachineError(
            "metastore.unreachable",
            f"the metastore's folder cannot be made: {e.strerror}",
            where=str(folder),
            do="give the metastore a folder this user may write to (metastore in include/project.yaml)",
        ) from e
    # SQLite creates its file by the process's umask, and the files beside it with the same mode.
    with contextlib.suppress(OSError):  # opening it reports what is wrong
        os.close(os.open(str(url.database), os.O_CREAT | os.O_EXCL, 0o600))
    engine = create_engine(
        _waiting(url, timeout=WAIT_SECONDS).set(drivername="sqlite+pysqlite"),
        hide_parameters=True,
        max_overflow=_CONNECTIONS_MORE,
    )
    event.listen(engine, "connect", _leave_transactions_to_us)
    event.listen(engine, "begin", _begin)
    return engine


def _waiting(url: URL, **times: Any) -> URL:
    """Add the driver's own waiting times to the URL, unless the URL sets them."""
    return url.set(query={**{name: str(value) for name, value in times.items()}, **url.query})


def _leave_transactions_to_us(dbapi_connection: Any, record: object) -> None:
    # Python's sqlite3 opens a transaction at the first write, which is too late to exclude other writers.
    dbapi_connection.isolation_level = None


def _begin(conn: Connection) -> None:
    # A transaction that first reads and then writes cannot wait for the lock (SQLITE_BUSY at once), so
    # writers take it at the start.
    statement = conn.get_execution_options().get("drawdown_begin", "BEGIN")
    if statement:
        conn.exec_driver_sql(statement)


def _bound_waits(dbapi_connection: Any, record: object) -> None:
    # A client that freezes in a transaction loses its connection, else its row lock would stay forever.
    with dbapi_connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{WAIT_SECONDS}s'")
        cursor.execute("SET idle_in_transaction_session_timeout = '60s'")
        for name, value in SERVER_GIVES_UP.items():
            cursor.execute(f"SET {name} = {value}")
    dbapi_connection.commit()


def _as_own_error(context: ExceptionContext, place: str) -> DrawdownError | None:
    """Return an error that a user can act on; None for a bug, whose exception stays as it is."""
    if context.is_pre_ping:
        # The pool asks whether a connection still works, and makes another one by itself.
        return None
    cause = context.original_exception
    name = getattr(cause, "sqlite_errorname", None)
    if name is not None:
        return _of_sqlite(str(name), place)
    sqlstate = getattr(cause, "sqlstate", "")
    if sqlstate == "" or type(cause).__module__.partition(".")[0] != "psycopg":
        return None
    return _of_postgresql(sqlstate, str(cause).strip().splitlines() or [""], place)


def _locked(place: str) -> SourceError:
    return SourceError(
        "metastore.locked",
        "another process keeps the metastore locked",
        where=place,
        do="try again; if it happens again, end the process with an open transaction in it",
    )


def _of_sqlite(name: str, place: str) -> DrawdownError | None:
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return _locked(place)
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return MachineError(
            "metastore.foreign",
            "the file is not a SQLite database, or is damaged",
            where=place,
            do="name another file as metastore in include/project.yaml, or restore this one from a backup",
        )
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return MachineError(
            "metastore.unreachable",
            "the metastore's file cannot be opened for writing",
            where=place,
            do="check that it is a file, and that this user may write to it and to its folder",
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return MachineError(
            "metastore.full",
            "the metastore's disk is full or failing",
            where=place,
            do="free space on its disk, then run again",
        )
    return None


def _of_postgresql(sqlstate: str | None, lines: list[str], place: str) -> DrawdownError | None:
    """Classify a failure by https://www.postgresql.org/docs/current/errcodes-appendix.html.

    Without a sqlstate there was no connection.
    """
    if sqlstate is None or sqlstate[:2] in ("08", "28", "53", "57", "58", "3D", "25"):
        return SourceError(
            "metastore.unreachable",
            f"the metastore's server refused or closed the connection: {lines[0]}",
            where=place,
            do="check that the server runs and that address, user and password are right (metastore in "
            "include/project.yaml)",
        )
    if sqlstate in ("55P03", "40P01", "40001"):
        return _locked(place)
    if sqlstate == "42501":
        return MachineError(
            "metastore.forbidden",
            f"the metastore's user lacks a right: {lines[0]}",
            where=place,
            do="grant it CREATE and USAGE on the schema and ownership of its tables",
        )
    return None
