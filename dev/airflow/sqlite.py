"""How the processes of a local Airflow open their SQLite database: they wait for one another's writes."""

from __future__ import annotations

import sqlite3
from typing import Any


class _Cursor(sqlite3.Cursor):
    def execute(self, sql: str, parameters: Any = (), /) -> _Cursor:
        # A savepoint outside of a transaction begins one that reads. Its first write then fails at once,
        # without waiting, if another process has written since (SQLITE_BUSY_SNAPSHOT): Airflow makes the
        # runs of a backfill so. https://www.sqlite.org/lang_savepoint.html, https://www.sqlite.org/rescode.html
        if sql.startswith("SAVEPOINT") and not self.connection.in_transaction:
            super().execute("BEGIN IMMEDIATE")
        return super().execute(sql, parameters)


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)


CONNECT_ARGUMENTS = {"timeout": 60, "factory": _Connection}
"""Airflow reads it by its dotted name. Seconds: the default fails after 5."""
