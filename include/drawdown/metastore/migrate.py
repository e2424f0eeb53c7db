"""The schema of a metastore, and the only way to change it.

Opening does not migrate: a store with another schema is used as it is if this program can, else refused. In
an empty database, opening creates a store with this program's schema. Only `upgrade` migrates, in one
transaction that is also the lock (SQLite: BEGIN IMMEDIATE; PostgreSQL: an advisory lock), so a process that
is killed in the middle leaves the store unchanged.
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
"""A column beside Alembic's own: the newest revision that a program must know to use the store."""
_VERSION = table(VERSION_TABLE, column("version_num"), column(_OLDEST))


def prepare(engine: Engine) -> None:
    """Create the store in an empty database; in any other, only read one row.

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
            do="if the other machines can use the new schema (docs/upgrading.md), run `drawdown metastore"
            " upgrade`",
        )


def upgrade(engine: Engine) -> tuple[str | None, str]:
    """Migrate to this program's schema; return the revisions before (None: it was empty) and after.

    A newer store that this program can use stays as it is.

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
    """Return the store's revision, None when it is empty. Refuses a store that this program cannot use."""
    where = shown(conn.engine.url)
    # Read the names once: between two reads, another process may create all tables.
    names = sorted(inspect(conn).get_table_names())
    if VERSION_TABLE not in names:
        if names:
            some = ", ".join(names[:3])
            raise MachineError(
                "metastore.foreign",
                f"the database holds tables of something else ({some})",
                where=where,
                do="give Drawdown its own database or PostgreSQL schema (`metastore:` in"
                " include/project.yaml)",
            )
        return None
    found = conn.execute(select(_VERSION.c.version_num)).scalar()
    if found is not None and found not in migrations.REVISIONS and not _may_go_on(conn):
        raise MachineError(
            "metastore.newer",
            f"the metastore has schema {found}; this program supports up to {migrations.HEAD}",
            where=where,
            do="upgrade drawdown on this machine to the version that the others run",
        )
    return found


def _may_go_on(conn: Connection) -> bool:
    """Whether the newer program that migrated the store recorded that this older one can still use it."""
    if all(each["name"] != _OLDEST for each in inspect(conn).get_columns(VERSION_TABLE)):
        return False
    return conn.execute(select(_VERSION.c[_OLDEST])).scalar() in migrations.REVISIONS


def _write_ahead(engine: Engine) -> None:
    """Switch the file to WAL, so that readers never wait for the writer; the file keeps this mode.

    SQLite does not wait for another process here (SQLITE_BUSY at once), hence the loop.
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
    """Migrate a store at this revision to HEAD, once, even if several processes try at the same time."""
    if engine.dialect.name == "sqlite":
        _write_ahead(engine)
    with engine.connect().execution_options(**WRITES) as conn, conn.begin():
        if engine.dialect.name == "postgresql":
            conn.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        # Another process may have been faster, and run another version.
        if _revision(conn) == before:
            _upgrade(conn)
            _note_oldest_program(conn)


def _upgrade(conn: Connection) -> None:
    # Imported here: importing Alembic takes longer than a whole open().
    from alembic import command
    from alembic.config import Config

    # Without this, the first process to open the store would log Alembic's lines about revisions.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = conn
    command.upgrade(config, "head")


def _note_oldest_program(conn: Connection) -> None:
    # Not part of a revision: a program reads this column before it knows the schema.
    if all(each["name"] != _OLDEST for each in inspect(conn).get_columns(VERSION_TABLE)):
        conn.execute(text(f"ALTER TABLE {VERSION_TABLE} ADD COLUMN {_OLDEST} TEXT"))
    conn.execute(update(_VERSION).values({_OLDEST: migrations.oldest_program()}))
