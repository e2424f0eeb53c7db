"""Verdicts: what an audit said, and what follows from it for the batches of its slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import Batch, BatchStatus, HeldSlice, Outcome, Verdict
from drawdown.metastore.tables import batches, verdicts

AFTER: dict[Outcome, BatchStatus] = {
    "pass": "passed",
    "warn": "passed",
    "empty": "passed",
    "fail": "held",
    "error": "committed",
}
"""The status of a committed batch after each outcome; after ``error`` the slice is audited again."""


def record(conn: Connection, verdict: Verdict) -> Verdict:
    """Keeps the verdict and moves the committed batches of its range; returns it with the store's time."""
    verdict = replace(verdict, created_at=read_clock(conn))
    conn.execute(insert(verdicts).values(asdict(verdict)))
    conn.execute(
        update(batches)
        .where(
            batches.c.pipeline == verdict.pipeline,
            batches.c.generation == verdict.generation,
            batches.c.status == "committed",
            batches.c.batch_id.between(verdict.first_batch, verdict.last_batch),
        )
        .values(status=AFTER[verdict.outcome], verdict=verdict.outcome)
    )
    return verdict


def read(conn: Connection, pipeline: str, limit: int) -> list[Verdict]:
    """The last verdicts of a pipeline, newest first."""
    found = conn.execute(_of(pipeline).order_by(verdicts.c.verdict_id.desc()).limit(limit))
    return [Verdict(**row._mapping) for row in found]


def read_of(conn: Connection, pipeline: str, run_id: str, limit: int) -> list[Verdict]:
    """The last verdicts of a run, newest first."""
    of_run = _of(pipeline).where(verdicts.c.run_id == run_id)
    found = conn.execute(of_run.order_by(verdicts.c.verdict_id.desc()).limit(limit))
    return [Verdict(**row._mapping) for row in found]


def slices(conn: Connection, pipeline: str, held: list[Batch]) -> list[HeldSlice]:
    """Held batches of one generation by the verdict that holds them, in order."""
    if not held:
        return []
    found = conn.execute(
        _of(pipeline)
        .where(
            verdicts.c.generation == held[0].generation,
            verdicts.c.outcome == "fail",
            verdicts.c.last_batch >= held[0].batch_id,
        )
        .order_by(verdicts.c.verdict_id)
    )
    # Of a batch that was rewound and judged again, the newest verdict counts.
    by_batch: dict[int, Verdict] = {}
    for verdict in (Verdict(**row._mapping) for row in found):
        by_batch |= {
            b.batch_id: verdict for b in held if verdict.first_batch <= b.batch_id <= verdict.last_batch
        }
    return [
        HeldSlice(verdict, tuple(batches))
        for verdict, batches in groupby(held, key=lambda batch: by_batch[batch.batch_id])
    ]


def published_measures(conn: Connection, pipeline: str, limit: int) -> list[dict[str, Any]]:
    """Measures of the last slices that were published, newest first; held and discarded ones are none."""
    return [row.measures for row in published_slices(conn, pipeline, limit) if row.measures]


def published_slices(conn: Connection, pipeline: str, limit: int) -> Sequence[Row[*tuple[Any, ...]]]:
    """The last slices that were published, newest first: verdict_id, generation, last_batch, measures."""
    found = conn.execute(
        select(verdicts.c.verdict_id, verdicts.c.generation, verdicts.c.last_batch, verdicts.c.measures)
        .join(
            batches,
            (batches.c.pipeline == verdicts.c.pipeline)
            & (batches.c.generation == verdicts.c.generation)
            & (batches.c.batch_id == verdicts.c.last_batch),
        )
        .where(
            verdicts.c.pipeline == pipeline,
            verdicts.c.outcome.in_(("pass", "warn", "fail")),
            batches.c.status == "published",
        )
        .order_by(verdicts.c.verdict_id.desc())
        .limit(limit)
    )
    return found.all()


def _of(pipeline: str) -> Select[Any]:
    columns = (c for c in verdicts.c if c is not verdicts.c.verdict_id)
    return select(*columns).where(verdicts.c.pipeline == pipeline)
