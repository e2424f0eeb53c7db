"""Which alerts were found, and which targets know of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from sqlalchemy import Connection, Engine, delete, insert, select, tuple_

from drawdown.metastore.records import Announcement
from drawdown.metastore.tables import announcements

_KEY = (announcements.c.pipeline, announcements.c.alert, announcements.c.target)


class Announcements:
    """The operations, each in one transaction. ``writer`` begins its transactions with the write lock."""

    def __init__(self, engine: Engine, writer: Engine) -> None:
        self._engine = engine
        self._writer = writer

    def read(self) -> list[Announcement]:
        """Return all, the oldest first."""
        query = select(announcements).order_by(announcements.c.since, *_KEY)
        with self._engine.begin() as conn:
            return [Announcement(**row._mapping) for row in conn.execute(query)]

    def keep(self, changed: Iterable[Announcement]) -> None:
        """Record these, each in place of what was recorded under its key."""
        rows = [asdict(each) for each in changed]
        if rows:
            with self._writer.begin() as conn:
                self._delete(conn, [(row["pipeline"], row["alert"], row["target"]) for row in rows])
                conn.execute(insert(announcements), rows)

    def forget(self, keys: Iterable[tuple[str, str, str]]) -> None:
        """Delete these: they are over and known to be, or nobody wants them any more."""
        if wanted := list(keys):
            with self._writer.begin() as conn:
                self._delete(conn, wanted)

    @staticmethod
    def _delete(conn: Connection, keys: list[tuple[str, str, str]]) -> None:
        for first in range(0, len(keys), 200):  # databases limit the values of one statement
            conn.execute(delete(announcements).where(tuple_(*_KEY).in_(keys[first : first + 200])))
