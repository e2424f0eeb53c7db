"""Clusters that commands of the project start: recorded before `up` is called, removed after `down`.

So a cluster whose run died, with its machine or without, is found by every other machine. A record is that of
one instance: whoever removes or changes it cannot meet the cluster of another try. What may become of a
record says drawdown.launch.commands.life; here it is read, changed and written in one transaction, by the
clock of the metastore.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, delete, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.older_clusters import as_instance
from drawdown.metastore.records import StartedCluster
from drawdown.metastore.tables import clusters, older_clusters

Transition = Callable[[StartedCluster, datetime], StartedCluster | None]
"""Returns a record as it is to be at a time; None: it is removed."""

_LIVE = ("starting", "up")


class Clusters:
    """The operations, each in one transaction. ``writer`` begins its transactions with the write lock."""

    def __init__(self, engine: Engine, writer: Engine) -> None:
        self._engine = engine
        self._writer = writer

    def begin(self, cluster: StartedCluster, replaced: Transition) -> None:
        """Record a cluster that is about to be started; `replaced` says what becomes of others of its key."""
        with self._writer.begin() as conn:
            others = select(clusters).where(clusters.c.cluster_key == cluster.cluster_key).with_for_update()
            for other in _records(conn, others):
                _write(conn, other, replaced(other, read_clock(conn)))
            conn.execute(insert(clusters).values(**_values(cluster)))

    def restore(self, cluster: StartedCluster) -> None:
        """Record a cluster again whose record was removed; nothing if it is there."""
        with self._writer.begin() as conn:
            if not _records(conn, select(clusters).where(clusters.c.instance == cluster.instance)):
                conn.execute(insert(clusters).values(**_values(cluster)))

    def change(self, instance: str, transition: Transition) -> StartedCluster | None:
        """Change the record of one instance; return it as it is now, None if there is none (any more)."""
        with self._writer.begin() as conn:
            found = _records(conn, select(clusters).where(clusters.c.instance == instance).with_for_update())
            if not found:
                return None
            after = transition(found[0], read_clock(conn))
            _write(conn, found[0], after)
            return after

    def adopt(self, late: timedelta, key: str | None = None) -> None:
        """Take over what a program before schema 0016 recorded and has not ended.

        Args:
            late: how long past its time.
            key: of the run whose cluster is taken over whatever its time is.
        """
        if not self._any_older():
            return
        with self._writer.begin() as conn:
            mine = older_clusters.c.until <= read_clock(conn) - late
            if key is not None:
                mine = older_clusters.c.cluster_key == key
            for row in conn.execute(select(older_clusters).where(mine)).mappings().all():
                conn.execute(delete(older_clusters).where(older_clusters.c.cluster_key == row["cluster_key"]))
                taken = as_instance(dict(row))
                conn.execute(delete(clusters).where(clusters.c.instance == taken["instance"]))
                conn.execute(insert(clusters).values(**taken))

    def read(self, instance: str) -> StartedCluster | None:
        return self._first(select(clusters).where(clusters.c.instance == instance))

    def live(self, key: str) -> StartedCluster | None:
        """Return the cluster of a run that is used or about to be; None while there is none, or it ends."""
        of_key = select(clusters).where(clusters.c.cluster_key == key, clusters.c.state.in_(_LIVE))
        return self._first(of_key.order_by(clusters.c.begun_at.desc()))

    def of_key(self, key: str) -> list[StartedCluster]:
        """Return all clusters of a run that are not known to be gone, oldest first."""
        return self._all(select(clusters).where(clusters.c.cluster_key == key).order_by(clusters.c.begun_at))

    def standing(self) -> list[StartedCluster]:
        """Return all recorded clusters, by key, then oldest first."""
        return self._all(select(clusters).order_by(clusters.c.cluster_key, clusters.c.begun_at))

    def _any_older(self) -> bool:
        with self._engine.begin() as conn:
            return conn.execute(select(older_clusters.c.cluster_key).limit(1)).first() is not None

    def _first(self, query: Any) -> StartedCluster | None:
        found = self._all(query.limit(1))
        return found[0] if found else None

    def _all(self, query: Any) -> list[StartedCluster]:
        with self._engine.begin() as conn:
            return _records(conn, query)


def _records(conn: Connection, query: Any) -> list[StartedCluster]:
    return [StartedCluster(**row._mapping) for row in conn.execute(query)]


def _values(cluster: StartedCluster) -> dict[str, Any]:
    return {each.name: getattr(cluster, each.name) for each in fields(StartedCluster)}


def _write(conn: Connection, before: StartedCluster, after: StartedCluster | None) -> None:
    mine = clusters.c.instance == before.instance
    if after is None:
        conn.execute(delete(clusters).where(mine))
    elif after != before:
        conn.execute(update(clusters).where(mine).values(**_values(after)))
