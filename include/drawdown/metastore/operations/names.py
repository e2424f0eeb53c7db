"""Rename or delete everything that the metastore keeps under a pipeline's name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, delete, func, literal, or_, select, update

from drawdown.errors import BusyError
from drawdown.metastore.clock import read_clock
from drawdown.metastore.operations.leases import in_force
from drawdown.metastore.tables import (
    announcements,
    backlogs,
    batches,
    changes,
    checkpoints,
    claims,
    figures,
    leases,
    maxima,
    quarantine_decisions,
    read_files,
    runs,
    staged_files,
    verdicts,
)

_TABLES = (
    announcements, backlogs, batches, changes, checkpoints, claims, figures, maxima, quarantine_decisions,
    read_files, runs, staged_files, verdicts,
)  # fmt: skip
_OF_A_NAME = (announcements, backlogs, claims, figures)
"""A schedule may have recorded these under the new name already: the old name's replace them."""
_PATHS = (
    checkpoints.c.path, staged_files.c.path, read_files.c.path, quarantine_decisions.c.keys_path,
    changes.c.place,
)  # fmt: skip


def known(conn: Connection) -> set[str]:
    """Return the pipelines with a checkpoint or a run, whether they are in the project or not."""
    return {
        str(name)
        for table in (checkpoints, runs)
        for name in conn.execute(select(table.c.pipeline).distinct()).scalars()
    }


def rename(conn: Connection, old: str, new: str, roots: Iterable[tuple[str, str]]) -> None:
    """Rename everything of `old` to `new`; at the start of paths, replace the first root of each pair.

    Raises BusyError lease.held while an interval of the pipeline is replayed.
    """
    _refuse_leased(conn, old)
    roots = list(roots)
    for before, after in roots:
        for path in _PATHS:
            conn.execute(
                update(path.table)
                .where(path.table.c.pipeline == old, func.substr(path, 1, len(before)) == before)
                .values({path: literal(after).concat(func.substr(path, len(before) + 1))})
            )
    _rename_feeds(conn, old, roots)
    for table in _OF_A_NAME:
        conn.execute(delete(table).where(table.c.pipeline == new))
    for table in _TABLES:
        conn.execute(update(table).where(table.c.pipeline == old).values(pipeline=new))
    conn.execute(
        update(changes)
        .where(or_(changes.c.lease == old, changes.c.lease.startswith(f"{old}#", autoescape=True)))
        .values(lease=literal(new).concat(func.substr(changes.c.lease, len(old) + 1)))
    )
    for row in conn.execute(select(leases).where(_leases_of(old))).all():
        # The greater epoch of both names: an epoch only grows, and sinks have seen both.
        name = new + row.pipeline.removeprefix(old)
        there = conn.execute(select(leases.c.epoch).where(leases.c.pipeline == name)).scalar()
        conn.execute(delete(leases).where(leases.c.pipeline == name))
        values = {"pipeline": name, "epoch": max(row.epoch, there or 0), "released": True}
        conn.execute(update(leases).where(leases.c.pipeline == row.pipeline).values(values))


def _rename_feeds(conn: Connection, old: str, roots: Sequence[tuple[str, str]]) -> None:
    """Rename the paths of the rows that decisions feed, which stand inside their record."""
    d = quarantine_decisions.c
    for row in conn.execute(select(d.decision_id, d.feeds).where(d.pipeline == old)).all():
        feeds = {
            source: {**feed, "path": _renamed(feed["path"], roots)} if "path" in feed else feed
            for source, feed in row.feeds.items()
        }
        if feeds != row.feeds:
            this = d.pipeline == old, d.decision_id == row.decision_id
            conn.execute(update(quarantine_decisions).where(*this).values(feeds=feeds))


def _renamed(path: str, roots: Sequence[tuple[str, str]]) -> str:
    for before, after in roots:
        if path.startswith(before):
            return after + path[len(before) :]
    return path


def forget(conn: Connection, name: str) -> int:
    """Delete everything of a pipeline; return how many rows there were.

    Raises BusyError lease.held while an interval of the pipeline is replayed.
    """
    _refuse_leased(conn, name)
    rows = sum(conn.execute(delete(table).where(table.c.pipeline == name)).rowcount for table in _TABLES)
    conn.execute(delete(leases).where(_leases_of(name)))
    return rows


def _leases_of(name: str) -> ColumnElement[bool]:
    return or_(leases.c.pipeline == name, leases.c.pipeline.startswith(f"{name}#", autoescape=True))


def _refuse_leased(conn: Connection, name: str) -> None:
    """Refuse while an interval's lease is held; the caller holds the leases of both sides."""
    # The caller holds the lease under which they commit.
    replays = leases.c.pipeline.startswith(f"{name}#replay ", autoescape=True)
    now = read_clock(conn)
    held = next((row for row in conn.execute(select(leases).where(replays)) if in_force(row, now)), None)
    if held is not None:
        raise BusyError(
            "lease.held",
            f"{held.holder} replays an interval of {name} (run {held.run_id})",
            where=f"pipeline {name}",
            do=f"wait for its end; `drawdown runs {name}` shows it",
        )
