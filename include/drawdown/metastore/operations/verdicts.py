"""Verdicts: what an audit said, and what follows from it for the batches of its slice."""

from __future__ import annotations

from collections.abc import Mapping
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

_AT_ONCE = 200  # rows of the history that are read at once


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


def published_measures(conn: Connection, pipeline: str, wanted: Mapping[str, int]) -> list[dict[str, Any]]:
    """Measures of the published slices, newest first, that give each measure its last values.

    Args:
        wanted: by measure how many of its values.
    """
    return [row.measures for row in published_slices(conn, pipeline, wanted)]


def published_slices(
    conn: Connection, pipeline: str, wanted: Mapping[str, int]
) -> list[Row[*tuple[Any, ...]]]:
    """The same as rows: verdict_id, generation, last_batch, measures; held and discarded slices are none.

    A slice without rows has no measures, and one may lack a value: neither takes the place of one that has.
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
