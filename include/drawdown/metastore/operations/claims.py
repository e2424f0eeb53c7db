"""Who has run, and what each pipeline took then of what all share (spec/project_wide/claims.py)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, delete, func, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.tables import checkpoints, claims
from drawdown.spec.project_wide.collisions import Ran


def note(conn: Connection, pipeline: str, lines: Collection[str], there: Collection[str]) -> None:
    """Record the lines of a run; one that was there before keeps the time since when it holds.

    Args:
        there: the pipelines that have a folder. The claims of all others end: a folder that was taken away
            and comes back is a newcomer, or it could keep a place for itself without running.
    """
    claiming = conn.execute(select(claims.c.pipeline).where(claims.c.lines != {})).scalars()
    if gone := [name for name in claiming if name not in there]:
        conn.execute(update(claims).where(claims.c.pipeline.in_(gone)).values(lines={}))
    before = conn.execute(select(claims.c.lines).where(claims.c.pipeline == pipeline)).scalar()
    now = read_clock(conn).isoformat()
    if before is None:
        first = conn.execute(
            select(func.min(checkpoints.c.created_at)).where(checkpoints.c.pipeline == pipeline)
        ).scalar()
        # Before there were claims, it has run with them since its first checkpoint, as far as is known.
        now = now if first is None else first.isoformat()
    after = {line: (before or {}).get(line, now) for line in sorted(lines)}
    if after != before:
        conn.execute(delete(claims).where(claims.c.pipeline == pipeline))
        conn.execute(insert(claims).values(pipeline=pipeline, lines=after))


def standing(conn: Connection, *, recorded: bool) -> dict[str, Ran]:
    """Return the pipelines that have run.

    Args:
        recorded: whether the store has claims; one that was not upgraded yet has none.
    """
    first = conn.execute(
        select(checkpoints.c.pipeline, func.min(checkpoints.c.created_at).label("first")).group_by(
            checkpoints.c.pipeline
        )
    )
    found = conn.execute(select(claims)).all() if recorded else []
    lines = {
        row.pipeline: {line: datetime.fromisoformat(since) for line, since in row.lines.items()}
        for row in found
    }
    return {row.pipeline: Ran(row.first, lines.get(row.pipeline)) for row in first}
