"""Clusters that commands of the project start: recorded before `up` is called, forgotten after `down`.

So a cluster whose run died, with its machine or without, is found by every other machine.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Engine, delete, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import StartedCluster
from drawdown.metastore.tables import clusters


class Clusters:
    """The operations, each in one transaction. ``writer`` begins its transactions with the write lock."""

    def __init__(self, engine: Engine, writer: Engine) -> None:
        self._engine = engine
        self._writer = writer

    def begin(self, cluster: StartedCluster) -> None:
        """Record a cluster that is about to be started; over what is recorded for its key."""
        values = {name: getattr(cluster, name) for name in StartedCluster.__dataclass_fields__}
        with self._writer.begin() as conn:
            conn.execute(delete(clusters).where(clusters.c.cluster_key == cluster.cluster_key))
            conn.execute(insert(clusters).values(**values))

    def note_answer(self, key: str, answer: dict[str, object]) -> None:
        """Record what `up` has answered."""
        with self._writer.begin() as conn:
            conn.execute(update(clusters).where(clusters.c.cluster_key == key).values(answer=answer))

    def end_by(self, key: str, until: datetime) -> None:
        """Record another deadline, for example now, after a `down` that failed."""
        with self._writer.begin() as conn:
            conn.execute(update(clusters).where(clusters.c.cluster_key == key).values(until=until))

    def forget(self, key: str) -> None:
        """Remove the record of a cluster that is gone; no error if there is none."""
        with self._writer.begin() as conn:
            conn.execute(delete(clusters).where(clusters.c.cluster_key == key))

    def read(self, key: str) -> StartedCluster | None:
        with self._engine.begin() as conn:
            row = conn.execute(select(clusters).where(clusters.c.cluster_key == key)).first()
        return None if row is None else StartedCluster(**row._mapping)

    def standing(self) -> list[StartedCluster]:
        """Return all recorded clusters, by key."""
        with self._engine.begin() as conn:
            return [
                StartedCluster(**row._mapping)
                for row in conn.execute(select(clusters).order_by(clusters.c.cluster_key))
            ]

    def overdue(self, by: timedelta) -> list[StartedCluster]:
        """Return the clusters that should have ended so long ago, by the clock of the metastore."""
        with self._engine.begin() as conn:
            late = clusters.c.until <= read_clock(conn) - by
            found = conn.execute(select(clusters).where(late).order_by(clusters.c.cluster_key))
            return [StartedCluster(**row._mapping) for row in found]
