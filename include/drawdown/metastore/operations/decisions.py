"""Decisions about rows of a quarantine: written once, deleted when their batch is undone."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlalchemy import Connection, delete, insert, select

from drawdown.metastore.clock import read_clock
from drawdown.metastore.records import QuarantineDecision
from drawdown.metastore.tables import batches, quarantine_decisions


def note(conn: Connection, decision: QuarantineDecision) -> QuarantineDecision:
    """Record a decision; return it with the store's time."""
    decision = replace(decision, decided_at=read_clock(conn))
    conn.execute(insert(quarantine_decisions).values(asdict(decision)))
    return decision


def read(conn: Connection, pipeline: str) -> list[QuarantineDecision]:
    """Return all decisions about a pipeline's quarantine, oldest first."""
    c = quarantine_decisions.c
    query = select(quarantine_decisions).where(c.pipeline == pipeline)
    rows = conn.execute(query.order_by(c.decided_at, c.decision_id))
    return [QuarantineDecision(**row._mapping) for row in rows]


def read_replays(
    conn: Connection, pipeline: str, generation: int, *, first_batch: int
) -> list[QuarantineDecision]:
    """Return the replays whose rows go into batches of a generation, from ``first_batch`` on."""
    c = quarantine_decisions.c
    query = select(quarantine_decisions).where(
        c.pipeline == pipeline,
        c.generation == generation,
        c.batch_id >= first_batch,
        c.kind == "replay",
    )
    return [QuarantineDecision(**row._mapping) for row in conn.execute(query.order_by(c.batch_id))]


def read_executed(conn: Connection, pipeline: str) -> set[str]:
    """Return the ids of decisions to replay rows whose batch has been executed."""
    c, b = quarantine_decisions.c, batches.c
    of_batch = (b.pipeline == c.pipeline) & (b.generation == c.generation) & (b.batch_id == c.batch_id)
    query = select(c.decision_id).join(batches, of_batch)
    query = query.where(c.pipeline == pipeline, c.kind == "replay", b.status != "staged")
    return set(conn.execute(query).scalars())


def forget_replays(conn: Connection, pipeline: str, generation: int, last_batch: int) -> None:
    """Delete the replays after ``last_batch``: their batches are undone, so their rows are open again."""
    c = quarantine_decisions.c
    conn.execute(
        delete(quarantine_decisions).where(
            c.pipeline == pipeline,
            c.generation == generation,
            c.batch_id > last_batch,
            c.kind.in_(("replay", "interval")),
        )
    )
