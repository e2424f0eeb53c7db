"""Brings a metastore to this program's schema, once, however many processes open it at the same time.

The migration runs in one transaction that is also the lock (SQLite: BEGIN IMMEDIATE; PostgreSQL: an advisory
lock), so a process killed in the middle leaves what was there before.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, select, text
from sqlalchemy.sql.expression import column, table

from drawdown.errors import MachineError, SourceError
from drawdown.metastore.connect import NO_TRANSACTION, WAIT_SECONDS, WRITES, shown
from drawdown.metastore.migrations import HEAD, REVISIONS
from drawdown.metastore.tables import VERSION_TABLE

_ADVISORY_LOCK = 0x6472_6177  # "draw"


def migrate(engine: Engine) -> None:
    """Migrates to HEAD; reads one row and returns when already there.

    Raises MachineError metastore.newer and metastore.foreign, before anything is changed.
    """
    with engine.begin() as conn:
        if _revision(conn) == HEAD:
            return
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with engine.connect().execution_options(**WRITES) as conn, conn.begin():
        if engine.dialect.name == "postgresql":
            conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        if _revision(conn) != HEAD:
            _upgrade(conn)


def _revision(conn: Connection) -> str | None:
    """The revision the store is at; None when it is empty. Anything else is refused."""
    where = shown(conn.engine.url)
    # One look: between two, another process may have made all tables.
    names = sorted(inspect(conn).get_table_names())
    if VERSION_TABLE not in names:
        if names:
            some = ", ".join(names[:3])
            raise MachineError(
                "metastore.foreign",
                f"the database holds tables of something else ({some})",
                where=where,
                do="give Drawdown a database, or a PostgreSQL schema, of its own (metastore in "
                "include/project.yaml)",
            )
        return None
    found = conn.execute(select(column("version_num")).select_from(table(VERSION_TABLE))).scalar()
    if found is not None and found not in REVISIONS:
        raise MachineError(
            "metastore.newer",
            f"the metastore has schema {found}; this program knows up to {HEAD}",
            where=where,
            do="upgrade drawdown on this machine to the version that the others run",
        )
    return found


def _write_ahead(engine: Engine) -> None:
    """Switches the file to WAL, so that readers never wait for the writer; the file remembers it.

    SQLite does not let two processes wait for each other here (SQLITE_BUSY at once), hence the loop.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            with engine.connect().execution_options(**NO_TRANSACTION) as conn:
                conn.exec_driver_sql("PRAGMA journal_mode=WAL")
            return
        except SourceError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _upgrade(conn: Connection) -> None:
    # Imported here: Alembic takes longer to import than a whole open() takes.
    from alembic import command
    from alembic.config import Config

    # Its lines about revisions would stand in the log of whoever opens the store first.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = conn
    command.upgrade(config, "head")
