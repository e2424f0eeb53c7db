"""Verdicts: what an audit said, and what follows from it for the batches of its slice."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import Connection, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import BatchStatus, Outcome, Verdict
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
    rows = conn.execute(
        select(*(c for c in verdicts.c if c is not verdicts.c.verdict_id))
        .where(verdicts.c.pipeline == pipeline)
        .order_by(verdicts.c.verdict_id.desc())
        .limit(limit)
    )
    return [Verdict(**row._mapping) for row in rows]
