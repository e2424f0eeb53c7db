"""A PostgreSQL table for a sink: read it, create it, compare it with the columns it must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from drawdown.errors import RefusedError
from drawdown.spec.sink import OutputMode

OLDEST_FOR_KEYS = 150000
# Types that an existing table may have instead of the type it would be created with.
_AS_GOOD = {"text": ("character varying",), "jsonb": ("json",), "numeric": ("numeric",)}
_RIGHTS = {
    "append": ("SELECT", "INSERT"),
    "update": ("SELECT", "INSERT", "UPDATE"),
    "complete": ("SELECT", "INSERT", "DELETE"),
}


@dataclass(frozen=True)
class PostgresColumn:
    """A column, its type spelled as PostgreSQL does (format_type)."""

    name: str
    type: str


@dataclass(frozen=True)
class PostgresTable:
    """One table by schema and name; every method works in the caller's transaction."""

    schema: str
    table: str

    @classmethod
    def of(cls, name: str) -> PostgresTable:
        """Parse ``schema.table``, as the spec writes it."""
        schema, _, table = name.partition(".")
        return cls(schema, table)

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def identifier(self) -> sql.Identifier:
        return sql.Identifier(self.schema, self.table)

    def exists(self, connection: Connection[Any]) -> bool:
        """Whether the table exists. Raises RefusedError ``sink.foreign`` for a view and other relations."""
        kind = self._one(connection, "SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)")
        if kind is not None and kind not in ("r", "p"):
            raise RefusedError(
                "sink.foreign", f"{self.name} is no table", where=self.name, do="name a table, or a new one"
            )
        return kind is not None

    def rows(self, connection: Connection[Any], columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return all rows, with these columns, in no order."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        return connection.execute(sql.SQL("SELECT {} FROM {}").format(names, self.identifier)).fetchall()

    def is_empty(self, connection: Connection[Any]) -> bool:
        """Whether it holds no row."""
        found = connection.execute(sql.SQL("SELECT EXISTS (SELECT FROM {})").format(self.identifier))
        return found.fetchone() == (False,)

    def create(
        self, connection: Connection[Any], columns: Sequence[PostgresColumn], keys: Sequence[str]
    ) -> None:
        """Create the table; the unique constraint on its keys treats NULL as a value like any other."""
        # No injection: the types come from a fixed list (sinks/postgres/spark_types.py).
        parts = [sql.SQL("{} {}").format(sql.Identifier(c.name), sql.SQL(c.type)) for c in columns]
        if keys:
            names = sql.SQL(", ").join(map(sql.Identifier, keys))
            parts.append(sql.SQL("UNIQUE NULLS NOT DISTINCT ({})").format(names))
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self.identifier, sql.SQL(", ").join(parts)))

    def refuse_server(self, connection: Connection[Any], keys: Sequence[str]) -> None:
        """Raise RefusedError for a server or schema that cannot take the table."""
        version = connection.info.server_version
        if keys and version < OLDEST_FOR_KEYS:
            raise RefusedError(
                "sink.old-server",
                f"PostgreSQL {version // 10000} has no unique constraint in which NULL keys are equal",
                where=self.name,
                do="use PostgreSQL 15 or later, or mode: append",
            )
        if self._one(connection, "SELECT pg_is_in_recovery()"):
            raise RefusedError(
                "sink.read-only", "the server is a standby", where=self.name, do="name its primary"
            )
        if self._one(connection, "SELECT to_regnamespace(%s)", sql.Identifier(self.schema)) is None:
            raise RefusedError(
                "sink.no-schema",
                f"the schema {self.schema} does not exist",
                where=self.name,
                do=f'CREATE SCHEMA "{self.schema}" for the user of the sink',
            )

    def refuse_rights(self, connection: Connection[Any], mode: OutputMode, *, replays: bool) -> None:
        """Raise RefusedError ``sink.forbidden`` when a right that mode or replays need is missing."""
        needed = (*_RIGHTS[mode], "DELETE") if replays else _RIGHTS[mode]
        lacking = [
            right
            for right in needed
            if not self._one(connection, f"SELECT has_table_privilege(%s, '{right}')")
        ]
        if lacking:
            raise RefusedError(
                "sink.forbidden",
                f"the user of the sink may not {' or '.join(lacking)} on {self.name}",
                where=self.name,
                do=f"GRANT {', '.join(lacking)} ON {self.name} to it",
            )

    def refuse_drift(self, connection: Connection[Any], columns: Sequence[PostgresColumn]) -> None:
        """Raise RefusedError ``sink.schema-drift`` that names every column that differs.

        The order may differ, and the table may have more columns that fill themselves (default, generated).
        """
        rows = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod), atthasdef OR attidentity <> '', attgenerated"
            " FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            [self.identifier.as_string(connection)],
        ).fetchall()
        have = {name: (kind, fills, generated) for name, kind, fills, generated in rows}
        want = {column.name: column.type for column in columns}
        problems = [f"`{name}` is missing" for name in want if name not in have]
        problems += [f"`{n}` is extra" for n, (_, fills, _) in have.items() if n not in want and not fills]
        problems += [
            f"`{name}` is {have[name][0]} instead of {kind}"
            for name, kind in want.items()
            if name in have and not _fits(have[name][0], kind)
        ]
        problems += [f"`{name}` is generated" for name in want if name in have and have[name][2]]
        if problems:
            raise RefusedError(
                "sink.schema-drift",
                f"the table {self.name} does not fit the declared schema: {'; '.join(problems)}",
                where=self.name,
                do="ALTER TABLE, or change the declared schema, until names and types agree (any order)",
            )

    def refuse_keys(self, connection: Connection[Any], keys: Sequence[str]) -> None:
        """Raise RefusedError ``sink.no-key`` without a unique index on exactly the keys that covers NULL."""
        found = connection.execute(
            "SELECT array_agg(a.attname::text), bool_and(a.attnotnull) OR i.indnullsnotdistinct"
            " FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
            " WHERE i.indrelid = to_regclass(%s) AND i.indisunique AND i.indisvalid AND i.indimmediate"
            " AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnatts = i.indnkeyatts"
            " GROUP BY i.indexrelid, i.indnullsnotdistinct",
            [self.identifier.as_string(connection)],
        ).fetchall()
        if not any(sorted(names) == sorted(keys) and covers for names, covers in found):
            named = ", ".join(f'"{key}"' for key in keys)
            raise RefusedError(
                "sink.no-key",
                f"{self.name} has no unique constraint on its keys ({named}) in which NULL keys are equal",
                where=self.name,
                do=f"ALTER TABLE {self.name} ADD UNIQUE NULLS NOT DISTINCT ({named})",
            )

    def _one(self, connection: Connection[Any], query: str, of: sql.Identifier | None = None) -> Any:
        """Return the only value of a query about this table, or about another name."""
        about = [(of or self.identifier).as_string(connection)] if "%s" in query else None
        row = connection.execute(query, about).fetchone()
        return None if row is None else row[0]


def _fits(found: str, wanted: str) -> bool:
    return found == wanted or found in _AS_GOOD.get(wanted.partition("(")[0], ())
