"""What was last recorded of each pipeline, and what waited at its sources: what pages and metrics read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Engine, Text, delete, insert, select, type_coerce

from drawdown.metastore import counts
from drawdown.metastore.clock import read_clock
from drawdown.metastore.operations.leases import in_force
from drawdown.metastore.operations.runs import REPLAY
from drawdown.metastore.records import RecordedFigures, RecordedReplay, SeenBacklog, SeenLease
from drawdown.metastore.tables import backlogs, batches, figures, leases, runs, staged_files

BACKLOGS_KEPT = 200
"""How many looks at a pipeline's sources are kept."""
REPLAYS = FILES = 2_000
"""How many replays and files of published batches are read at most, the newest."""


class CountedRuns(NamedTuple):
    """Sums of the counts of runs, when the newest of them began, and those that have not ended."""

    sums: dict[str, int]
    until: datetime | None
    opened: tuple[str, ...]


class FiguresTable:
    """The operations, each in one transaction. ``writer`` begins its transactions with the write lock."""

    def __init__(self, engine: Engine, writer: Engine) -> None:
        self._engine = engine
        self._writer = writer

    def record(self, pipeline: str, content: Mapping[str, Any]) -> None:
        """Record this in place of what was recorded before, as of now."""
        with self._writer.begin() as conn:
            conn.execute(delete(figures).where(figures.c.pipeline == pipeline))
            values = {"pipeline": pipeline, "recorded_at": read_clock(conn), "content": dict(content)}
            conn.execute(insert(figures).values(values))

    def read(self, pipelines: Iterable[str] | None = None) -> list[RecordedFigures]:
        """Return what is recorded of these pipelines, or of all, by name."""
        content = type_coerce(figures.c.content, Text).label("content")
        query = select(figures.c.pipeline, figures.c.recorded_at, content).order_by(figures.c.pipeline)
        if pipelines is not None:
            query = query.where(figures.c.pipeline.in_(list(pipelines)))
        with self._engine.begin() as conn:
            return [RecordedFigures(**row._mapping) for row in conn.execute(query)]

    def leases(self) -> tuple[datetime, dict[str, SeenLease]]:
        """Return the time now, and the leases that were not released, by name."""
        with self._engine.begin() as conn:
            now = read_clock(conn)
            found = conn.execute(select(leases).where(leases.c.released.is_(False)))
            return now, {
                row.pipeline: SeenLease(in_force(row, now), row.holder, row.acquired_at) for row in found
            }

    def note_backlog(self, pipeline: str, by_source: Mapping[str, Mapping[str, Any]]) -> None:
        """Record what waits now; the oldest looks are forgotten."""
        of_it = backlogs.c.pipeline == pipeline
        with self._writer.begin() as conn:
            now = read_clock(conn)
            conn.execute(delete(backlogs).where(of_it, backlogs.c.seen_at == now))
            values = {"pipeline": pipeline, "seen_at": now, "by_source": by_source}
            conn.execute(insert(backlogs).values(values))
            kept = select(backlogs.c.seen_at).where(of_it).order_by(backlogs.c.seen_at.desc())
            last = conn.execute(kept.offset(BACKLOGS_KEPT - 1).limit(1)).scalar()
            if last is not None:
                conn.execute(delete(backlogs).where(of_it, backlogs.c.seen_at < last))

    def backlogs(self, pipeline: str, limit: int = BACKLOGS_KEPT) -> list[SeenBacklog]:
        """Return the last looks at a pipeline's sources, newest first."""
        query = select(backlogs).where(backlogs.c.pipeline == pipeline)
        query = query.order_by(backlogs.c.seen_at.desc()).limit(limit)
        with self._engine.begin() as conn:
            return [SeenBacklog(**row._mapping) for row in conn.execute(query)]

    def counts_since(self, pipeline: str, since: datetime | None, opened: Iterable[str]) -> CountedRuns:
        """Return the counts of the runs that began after this time, or are among these, and have ended.

        Args:
            opened: ids of runs that had not ended when the runs before `since` were counted.
        """
        rows = [runs.c.run_id, runs.c.started_at, runs.c.ended_at, *(runs.c[name] for name in counts.NAMES)]
        began = [] if since is None else [runs.c.started_at > since]
        queries = [select(*rows).where(runs.c.pipeline == pipeline, *began)]
        if ids := list(opened):
            queries.append(select(*rows).where(runs.c.run_id.in_(ids)))
        with self._engine.begin() as conn:
            found = [row for query in queries for row in conn.execute(query)]
        ended = [row._mapping for row in found if row.ended_at is not None]
        return CountedRuns(
            {name: sum(row[name] for row in ended) for name in counts.NAMES},
            max([*(row.started_at for row in found), *([] if since is None else [since])], default=None),
            tuple(row.run_id for row in found if row.ended_at is None),
        )

    def replays(self, pipelines: Iterable[str]) -> list[RecordedReplay]:
        """Return the newest replays of these pipelines, newest first."""
        names = ("run_id", "pipeline", "state", "started_at", "ended_at", "published", "notices", "origin")
        query = select(*(runs.c[name] for name in names)).where(
            runs.c.pipeline.in_(list(pipelines)), runs.c.kind == REPLAY
        )
        with self._engine.begin() as conn:
            found = conn.execute(query.order_by(runs.c.started_at.desc()).limit(REPLAYS))
            return [_replay(row) for row in found if "interval" in row.origin]

    def published_actions(self, pipeline: str, generation: int) -> list[dict[str, Any]]:
        """Return the actions that made the newest files of a generation's output visible, newest first."""
        of_batch = (
            (batches.c.pipeline == staged_files.c.pipeline)
            & (batches.c.generation == staged_files.c.generation)
            & (batches.c.batch_id == staged_files.c.batch_id)
        )
        query = (
            select(staged_files.c.action)
            .join(batches, of_batch)
            .where(staged_files.c.pipeline == pipeline, staged_files.c.generation == generation)
            .where(staged_files.c.table_name == "output", batches.c.status == "published")
            .order_by(staged_files.c.batch_id.desc())
        )
        with self._engine.begin() as conn:
            return list(conn.execute(query.limit(FILES)).scalars())

    def usages(self, pipeline: str, since: datetime) -> list[dict[str, Any]]:
        """Return what the runs of a pipeline used that began then or later, as far as it is known."""
        query = select(runs.c.usage).where(
            runs.c.pipeline == pipeline, runs.c.started_at >= since, runs.c.usage.is_not(None)
        )
        with self._engine.begin() as conn:
            return list(conn.execute(query).scalars())


def _replay(row: Any) -> RecordedReplay:
    start, end = (datetime.fromisoformat(text) for text in row.origin["interval"])
    about = tuple(each["about"] for each in row.notices if each.get("id") == "replay.downstream")
    return RecordedReplay(
        row.run_id, row.pipeline, row.state, start, end, row.started_at, row.ended_at, row.published, about,
        row.origin,
    )  # fmt: skip
