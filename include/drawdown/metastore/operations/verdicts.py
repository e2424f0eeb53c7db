"""Verdicts: the outcome of an audit, and its effect on the batches of the slice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, update

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import Batch, BatchStatus, HeldSlice, Outcome, Run, Verdict
from drawdown.metastore.tables import batches, verdicts

AFTER: dict[Outcome, BatchStatus] = {
    "pass": "passed",
    "warn": "passed",
    "empty": "passed",
    "fail": "held",
    "error": "committed",
}
"""The status of a committed batch by outcome; after ``error`` the slice is audited again."""

_AT_ONCE = 200  # rows of the history per read


def record(conn: Connection, verdict: Verdict) -> Verdict:
    """Record the verdict and update the committed batches of its range; return it with the store's time."""
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


def read(conn: Connection, pipeline: str, limit: int = 50) -> list[Verdict]:
    """Return the last verdicts of a pipeline, newest first."""
    found = conn.execute(_of(pipeline).order_by(verdicts.c.verdict_id.desc()).limit(limit))
    return [Verdict(**row._mapping) for row in found]


def read_of(conn: Connection, run: Run, limit: int = 50) -> list[Verdict]:
    """Return the last verdicts of a run of any age, newest first; a watch has one per slice."""
    of_run = _of(run.pipeline).where(verdicts.c.run_id == run.run_id)
    found = conn.execute(of_run.order_by(verdicts.c.verdict_id.desc()).limit(limit))
    return [Verdict(**row._mapping) for row in found]


def slices(conn: Connection, pipeline: str, held: list[Batch]) -> list[HeldSlice]:
    """Group held batches of one generation by the verdict that holds them, in order."""
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
    # For a batch that was rewound and audited again, the newest verdict counts.
    by_batch: dict[int, Verdict] = {}
    for verdict in (Verdict(**row._mapping) for row in found):
        by_batch |= {
            b.batch_id: verdict for b in held if verdict.first_batch <= b.batch_id <= verdict.last_batch
        }
    return [
        HeldSlice(verdict, tuple(batches))
        for verdict, batches in groupby(held, key=lambda batch: by_batch[batch.batch_id])
    ]


def published_measures(conn: Connection, pipeline: str, wanted: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return measures of published slices, newest first, with which the next slice is compared.

    Args:
        wanted: how many of the last values of each measure.
    """
    return [row.measures for row in published_slices(conn, pipeline, wanted)]


def published_slices(
    conn: Connection, pipeline: str, wanted: Mapping[str, int]
) -> list[Row[*tuple[Any, ...]]]:
    """Return the same as rows: verdict_id, generation, last_batch, measures; no held or discarded slices.

    A slice without rows has no measures, and a slice may lack a value: neither counts towards `wanted`.
    """
    missing = dict(wanted)
    query = (
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
        .execution_options(yield_per=_AT_ONCE)
    )
    found = []
    with conn.execute(query) as rows:
        for row in rows:
            if not any(missing.values()):
                break
            values = row.measures or {}
            given = [
                key for key, left in missing.items() if left and isinstance(values.get(key), int | float)
            ]
            for key in given:
                missing[key] -= 1
            if given:
                found.append(row)
    return found


def _of(pipeline: str) -> Select[Any]:
    columns = (c for c in verdicts.c if c is not verdicts.c.verdict_id)
    return select(*columns).where(verdicts.c.pipeline == pipeline)
