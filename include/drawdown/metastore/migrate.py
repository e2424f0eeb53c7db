"""Which schema a metastore has, and the one way to change it.

Opening changes nothing: a store of another schema is used as it is when this program can, else refused. Who
opens an empty database first makes a store of this program's schema. Only `upgrade` migrates, in one
transaction that is also the lock (SQLite: BEGIN IMMEDIATE; PostgreSQL: an advisory lock), so a process
killed in the middle leaves what was there before.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, select, text, update
from sqlalchemy.sql.expression import column, table

from drawdown.errors import MachineError, SourceError
from drawdown.metastore import migrations
from drawdown.metastore.connect import NO_TRANSACTION, WAIT_SECONDS, WRITES, shown
from drawdown.metastore.tables import VERSION_TABLE

_ADVISORY_LOCK = 0x6472_6177  # "draw"
_OLDEST = "oldest_program"
"""A column beside Alembic's own: the last revision that a program must know to go on with the store."""
_VERSION = table(VERSION_TABLE, column("version_num"), column(_OLDEST))


def prepare(engine: Engine) -> None:
    """Makes a store of an empty database; reads one row of any other, and writes nothing.

    Raises MachineError metastore.older, metastore.newer and metastore.foreign.
    """
    found = _look(engine)
    if found is None:
        _migrate(engine, None)
        found = _look(engine)
    missing = migrations.needed_behind(found)
    if missing:
        raise MachineError(
            "metastore.older",
            f"the metastore has schema {found}; this program needs {missing[-1]}",
            where=shown(engine.url),
            do="when the other machines may have the new schema, too (docs/upgrading.md):"
            " drawdown metastore upgrade",
        )


def upgrade(engine: Engine) -> tuple[str | None, str]:
    """Migrates to this program's schema; gives the revision of before (None: it was empty) and that of now.

    A newer store that this program can use stays what it is.

    Raises MachineError metastore.newer and metastore.foreign, before anything is changed.
    """
    before = now = _look(engine)
    while now is None or now in migrations.REVISIONS[:-1]:
        _migrate(engine, now)
        now = _look(engine)
    return before, now


def _look(engine: Engine) -> str | None:
    with engine.begin() as conn:
        return _revision(conn)


def _revision(conn: Connection) -> str | None:
    """The revision the store is at; None when it is empty. What this program cannot use is refused."""
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
    found = conn.execute(select(_VERSION.c.version_num)).scalar()
    if found is not None and found not in migrations.REVISIONS and not _may_go_on(conn):
        raise MachineError(
            "metastore.newer",
            f"the metastore has schema {found}; this program knows up to {migrations.HEAD}",
            where=where,
            do="upgrade drawdown on this machine to the version that the others run",
        )
    return found


def _may_go_on(conn: Connection) -> bool:
    """Whether who has migrated the store noted that a program as old as this one can go on with it."""
    if all(each["name"] != _OLDEST for each in inspect(conn).get_columns(VERSION_TABLE)):
        return False
    return conn.execute(select(_VERSION.c[_OLDEST])).scalar() in migrations.REVISIONS


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


def _migrate(engine: Engine, before: str | None) -> None:
    """Brings a store that is at this revision to HEAD, once, however many processes ask at the same time."""
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with engine.connect().execution_options(**WRITES) as conn, conn.begin():
        if engine.dialect.name == "postgresql":
            conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        # Another process may have been faster, with whatever program.
        if _revision(conn) == before:
            _upgrade(conn)
            _note_oldest_program(conn)


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


def _note_oldest_program(conn: Connection) -> None:
    # A program asks for it before it knows the schema: it is no matter of a revision.
    if all(each["name"] != _OLDEST for each in inspect(conn).get_columns(VERSION_TABLE)):
        conn.execute(text(f"ALTER TABLE {VERSION_TABLE} ADD COLUMN {_OLDEST} TEXT"))
    conn.execute(update(_VERSION).values({_OLDEST: migrations.oldest_program()}))
