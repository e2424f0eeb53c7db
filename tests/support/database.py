"""A PostgreSQL database of one test: as project.yaml names it, and read back without Drawdown."""

from __future__ import annotations

import os
from typing import Any

import psycopg

from drawdown.testing.servers.postgres import PostgresServer
from tests.support.sandbox import sorted_rows

_PASSWORD = "DRAWDOWN_TEST_DATABASE_PASSWORD"


class TestDatabase:
    """An empty database on a server; its password travels in this process's environment."""

    __test__ = False

    def __init__(self, server: PostgresServer) -> None:
        self.url = server.create_database()
        self.server = server
        os.environ[_PASSWORD] = server.password

    @property
    def project_lines(self) -> str:
        """For project.yaml."""
        name = self.url.rpartition("/")[2]
        where = f"host: {self.server.host}, port: {self.server.port}, dbname: {name}"
        login = f"user: {self.server.user}, password: '${{{_PASSWORD}}}'"
        return f"databases:\n  default: {{{where}, {login}}}\n"

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of one statement of this test's own, committed."""
        with psycopg.connect(self.url) as connection:
            done = connection.execute(statement.encode(), values or None)
            return done.fetchall() if done.description else []

    def table(self, table: str = "public.out") -> list[tuple[Any, ...]]:
        """All rows of a table, sorted; none without it."""
        if self.execute("SELECT to_regclass(%s)", table) == [(None,)]:
            return []
        return sorted_rows(self.execute(f"SELECT * FROM {table}"))
