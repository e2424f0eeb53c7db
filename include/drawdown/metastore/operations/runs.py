"""Run records: one row per attempt, written while it runs and closed once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, insert, literal, select, type_coerce, update

from drawdown.errors import RefusedError
from drawdown.metastore import counts
from drawdown.metastore.clock import read_clock, store_now
from drawdown.metastore.records import UNCOUNTED, Newest, Run, RunState, Side
from drawdown.metastore.tables import batches, runs

PROGRESS_KEPT = 20
"""How many of the last progress entries a run keeps, so that its row stays small with many batches."""

PUBLISHED = "published"
"""Key in the origin of a run: the batches that it made visible, whichever run drained them."""

DRAIN, WATCH, QUARANTINE_REPLAY = "drain", "watch", "quarantine-replay"
READING = (DRAIN, WATCH, QUARANTINE_REPLAY)
"""The kinds of runs that extend a pipeline's output."""

REPLAY, REBUILD, ANSWER = "replay", "rebuild", "answer"
BESIDE = (REPLAY, REBUILD, ANSWER)
"""The kinds of runs that may run beside the holder of a pipeline's lease."""

_REQUEST = (("dag_id", "dag_run_id"), ("command_id",))
"""Keys in the origin of a run that name the request it belongs to."""

CHANGEABLE = frozenset(f.name for f in fields(Run)) - {
    "run_id",
    "pipeline",
    "state",
    "started_at",
    "ended_at",
    "application",
}


def start(conn: Connection, run: Run) -> Run:
    """Record a run as running, from now on; needs no lease, so a refused run leaves a record too.

    Raises RefusedError run.exists when its id is taken.
    """
    if conn.execute(select(runs.c.run_id).where(runs.c.run_id == run.run_id)).first() is not None:
        raise RefusedError(
            "run.exists",
            f"there is a run {run.run_id} already",
            where=f"pipeline {run.pipeline}",
            do="start each attempt with its own run id",
        )
    run = replace(run, state="running", started_at=read_clock(conn), ended_at=None)
    conn.execute(insert(runs).values(_columns({f.name: getattr(run, f.name) for f in fields(run)})))
    return run


def change(conn: Connection, run_id: str, values: dict[str, Any]) -> None:
    """Change fields of a run, except its identity, state and times (TypeError)."""
    unknown = values.keys() - CHANGEABLE
    if unknown:
        raise TypeError(f"not fields of a run that can be changed: {', '.join(sorted(unknown))}")
    if values:
        conn.execute(update(runs).where(runs.c.run_id == run_id).values(_columns(values)))


def finish(conn: Connection, run_id: str, state: RunState, values: dict[str, Any]) -> None:
    """Close a run, now. A closed run keeps its state, end and fields.

    So a run that lost its lease and was recorded as crashed cannot turn into a success.
    """
    running = select(runs.c.run_id).where(runs.c.run_id == run_id, runs.c.state == "running")
    if conn.execute(running.with_for_update()).first() is None:
        return
    change(conn, run_id, values)
    conn.execute(update(runs).where(runs.c.run_id == run_id).values(state=state, ended_at=store_now()))


def crash_others(conn: Connection, pipeline: str, run_id: str, side: Side) -> list[Run]:
    """Close every other open run under this side's lease as crashed; return them, oldest first."""
    others = *_under_lease(pipeline, side), runs.c.run_id != run_id
    open_runs = conn.execute(select(runs).where(*others).with_for_update()).all()
    # Sorted here: with an ORDER BY, SQLite would read all the pipeline's runs by time.
    open_runs = sorted(open_runs, key=lambda row: (row.started_at, row.run_id))
    now = read_clock(conn)
    for row in open_runs:
        conn.execute(update(runs).where(runs.c.run_id == row.run_id).values(state="crashed", ended_at=now))
    return [replace(_run(row._mapping), state="crashed", ended_at=now) for row in open_runs]


def read_open(conn: Connection, pipeline: str, side: Side) -> list[Run]:
    """Return the runs under this side's lease whose state is running."""
    return [_run(row._mapping) for row in conn.execute(select(runs).where(*_under_lease(pipeline, side)))]


def _under_lease(pipeline: str, side: Side) -> list[ColumnElement[bool]]:
    kind = runs.c.kind.not_in(BESIDE) if side == "live" else runs.c.kind == REBUILD
    return [runs.c.pipeline == pipeline, runs.c.state == "running", kind]


def crash_replays(conn: Connection, run: Run) -> None:
    """Close every open replay of the same interval as crashed; the caller holds the interval's lease."""
    here = runs.c.pipeline == run.pipeline, runs.c.state == "running", runs.c.kind == REPLAY
    for row in conn.execute(select(runs).where(*here).with_for_update()).all():
        if row.run_id != run.run_id and row.origin.get("interval") == run.origin.get("interval"):
            finish(conn, row.run_id, "crashed", {})


def read_one(conn: Connection, run_id: str) -> Run | None:
    """Return one run; None when the id is unknown."""
    row = conn.execute(select(runs).where(runs.c.run_id == run_id)).one_or_none()
    return None if row is None else _run(row._mapping)


def read(conn: Connection, pipeline: str | None = None, limit: int = 50) -> list[Run]:
    """Return the last runs of a pipeline, or of all, newest first."""
    query = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id.desc()).limit(limit)
    if pipeline is not None:
        query = query.where(runs.c.pipeline == pipeline)
    return [_run(row._mapping) for row in conn.execute(query)]


def read_recent(conn: Connection, pipeline: str, limit: int, *, with_progress: bool = False) -> list[Run]:
    """Return the last runs that read, newest first; by default without their progress, most of a row."""
    columns: list[ColumnElement[Any]] = [column for column in runs.c if column.name != "progress"]
    progress = runs.c.progress if with_progress else literal([], runs.c.progress.type).label("progress")
    query = (
        select(*columns, progress)
        .where(runs.c.pipeline == pipeline, runs.c.kind.in_(READING))
        .order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
        .limit(limit)
    )
    return [_run(row._mapping) for row in conn.execute(query)]


def read_newest(conn: Connection, pipeline: str) -> Newest | None:
    """Return the newest run that reads, with facts from earlier runs; None before the first."""
    newest_first = (
        select(runs)
        .where(runs.c.pipeline == pipeline, runs.c.kind.in_(READING))
        .order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
        .limit(1)
    )
    row = conn.execute(newest_first).one_or_none()
    if row is None:
        return None
    marked = conn.execute(newest_first.where(runs.c.watermark.is_not(None))).one_or_none()
    succeeded = conn.execute(newest_first.where(runs.c.state == "succeeded")).one_or_none()
    return Newest(
        _run(row._mapping),
        None if marked is None else marked.watermark,
        None if succeeded is None else succeeded.ended_at,
    )


def note_published(conn: Connection, run_id: str, generation: int, batch_ids: Iterable[int]) -> None:
    """Record in a run's origin which batches it made visible, as [generation, first, last]."""
    origin = conn.execute(select(runs.c.origin).where(runs.c.run_id == run_id).with_for_update()).scalar()
    if origin is None:
        return
    ranges = [list(each) for each in origin.get(PUBLISHED, ())]
    for batch_id in sorted(batch_ids):
        if ranges and ranges[-1][0] == generation and ranges[-1][2] == batch_id - 1:
            ranges[-1][2] = batch_id
        else:
            ranges.append([generation, batch_id, batch_id])
    conn.execute(update(runs).where(runs.c.run_id == run_id).values(origin={**origin, PUBLISHED: ranges}))


def read_published(conn: Connection, pipeline: str, since: datetime | None = None) -> list[Run]:
    """Return runs that began at `since` or later and made batches visible, drained by any run; oldest first.

    Runs of versions that did not record it are left out.
    """
    query = select(runs).where(
        runs.c.pipeline == pipeline,
        type_coerce(runs.c.origin, Text).contains(_json(PUBLISHED), autoescape=True),
    )
    if since is not None:
        query = query.where(runs.c.started_at >= since)
    found = (_run(row._mapping) for row in conn.execute(query.order_by(runs.c.started_at, runs.c.run_id)))
    return [run for run in found if PUBLISHED in run.origin]


def read_by_origin(
    conn: Connection,
    origin: Mapping[str, Any],
    *,
    pipeline: str | None = None,
    kinds: Collection[str] = (),
) -> list[Run]:
    """Return every run of any age whose origin has these values, newest first; of these kinds, or of all."""
    request = request_of(origin)
    wanted = [] if request is None else [runs.c.request == request]
    if pipeline is not None:
        wanted.append(runs.c.pipeline == pipeline)
    if kinds:
        wanted.append(runs.c.kind.in_(kinds))
    rows = conn.execute(select(runs).where(*wanted)).all()
    # Sorted here, as in crash_others.
    newest_first = sorted(rows, key=lambda row: (row.started_at, row.run_id), reverse=True)
    found = (_run(row._mapping) for row in newest_first)
    return [run for run in found if origin.items() <= run.origin.items()]


def request_of(origin: Mapping[str, Any]) -> str | None:
    """Return the id of the DAG run, or else the command, of an origin; None when it names neither."""
    for keys in _REQUEST:
        if all(key in origin for key in keys):
            return _json([origin[key] for key in keys])
    return None


def _json(value: Any) -> str:
    """Return the value as the column stores it."""
    return json.dumps(value, separators=(",", ":"))


def read_uncounted(conn: Connection, pipeline: str, generation: int) -> Run | None:
    """Return the newest uncounted watch of a generation that began after the run of its last recorded batch.

    Any number of runs may have followed: a backfill may add hundreds.
    """
    noted = (
        select(batches.c.run_id)
        .where(batches.c.pipeline == pipeline, batches.c.generation == generation)
        .order_by(batches.c.batch_id.desc())
        .limit(1)
    )
    last = conn.execute(noted).scalar()
    since = conn.execute(select(runs.c.started_at).where(runs.c.run_id == last)).scalar()
    query = select(runs).where(runs.c.pipeline == pipeline, runs.c.generation == generation)
    if since is not None:
        query = query.where(runs.c.started_at >= since, runs.c.run_id != last)
    query = query.order_by(runs.c.started_at.desc(), runs.c.run_id.desc())
    with conn.execute(query.execution_options(yield_per=100)) as found:
        return next((_run(row._mapping) for row in found if UNCOUNTED in row.origin), None)


def published_at(conn: Connection, pipeline: str) -> datetime | None:
    """Return the end of the last run that made rows visible; None if none did."""
    newest = (
        select(runs.c.ended_at)
        .where(runs.c.pipeline == pipeline, runs.c.kind != REBUILD)
        .where(runs.c.published > 0, runs.c.ended_at.is_not(None))
    )
    return conn.execute(newest.order_by(runs.c.started_at.desc()).limit(1)).scalar()


def last_published(conn: Connection, pipeline: str) -> datetime | None:
    """Return when a run last made rows visible; if none did, when the first run began; None before it."""
    first = select(runs.c.started_at).where(runs.c.pipeline == pipeline).order_by(runs.c.started_at)
    return published_at(conn, pipeline) or conn.execute(first.limit(1)).scalar()


def published_after(conn: Connection, pipeline: str, after: datetime | None) -> datetime | None:
    """Return the end of the first run that made rows visible and ended after this time; None without one."""
    found = (
        select(runs.c.ended_at)
        .where(runs.c.pipeline == pipeline, runs.c.kind != REBUILD, runs.c.published > 0)
        .where(runs.c.ended_at.is_not(None) if after is None else runs.c.ended_at > after)
    )
    return conn.execute(found.order_by(runs.c.ended_at).limit(1)).scalar()


def began_to_publish(conn: Connection, pipeline: str) -> datetime | None:
    """Return when the last run began that reads and made rows visible."""
    return _newest_start(conn, pipeline, runs.c.published > 0)


def began_to_succeed(conn: Connection, pipeline: str) -> datetime | None:
    """Return when the last run began that reads and succeeded."""
    return _newest_start(conn, pipeline, runs.c.state == "succeeded")


def _newest_start(conn: Connection, pipeline: str, which: ColumnElement[bool]) -> datetime | None:
    found = select(runs.c.started_at).where(runs.c.pipeline == pipeline, runs.c.kind.in_(READING), which)
    return conn.execute(found.order_by(runs.c.started_at.desc()).limit(1)).scalar()


def _run(columns: Any) -> Run:
    values = counts.from_columns(columns)
    del values["request"]
    return Run(**values)


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    columns = counts.to_columns(values)
    if "origin" in columns:
        columns["request"] = request_of(columns["origin"])
    if "progress" in columns:
        columns["progress"] = list(columns["progress"])[-PROGRESS_KEPT:]
    return columns
