"""Deciding about a held slice: release publishes it as it is, discard drops it. Neither needs Spark.

Both take the pipeline's lease and leave a run record that says who decided, and why. The checkpoint is
not touched: what a held slice was made of is not read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Checkpoint, Counts, Lease, Run
from drawdown.publishing.publish import Published, publish_passed, publish_released, visible
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

Choice = Literal["release", "discard"]


@dataclass(frozen=True)
class Decision:
    """What is decided about the held slice of a pipeline, by whom and why."""

    choice: Choice
    run_id: str
    holder: str
    by: str
    why: str


@dataclass(frozen=True)
class Decided:
    """What a decision came to: the batches that were held, their rows, and what is visible now."""

    batch_ids: tuple[int, ...]
    rows: int
    published: Published


def decide(metastore: Metastore, project: Project, pipeline: Pipeline, decision: Decision) -> Decided:
    """Release or discard every held batch of a pipeline, then publish what waited behind them.

    Raises:
        BusyError: a run holds the lease.
        RefusedError: ``slice.none-held``; ``slice.visible``: a release of it died half-way.
        SourceError: the sink cannot be reached; nothing is decided then, or the same call completes it.
    """
    lease = metastore.acquire(pipeline.name, decision.holder, decision.run_id, project.lease_ttl.delta)
    try:
        checkpoint = metastore.active_checkpoint(pipeline.name)
        held = _held(metastore, pipeline, checkpoint)
        assert checkpoint is not None
        metastore.start_run(
            Run(
                decision.run_id,
                pipeline.name,
                kind=decision.choice,
                holder=decision.holder,
                origin={"by": decision.by, "why": decision.why},
            )
        )
        try:
            published = _carry_out(metastore, lease, project, pipeline, checkpoint, decision.choice, held)
        except DrawdownError as error:
            metastore.finish_run(decision.run_id, "failed", error=error.as_dict())
            raise
        counts = Counts(published=published.rows)
        metastore.finish_run(
            decision.run_id, "succeeded", generation=checkpoint.generation, counts=counts, batches=len(held)
        )
    finally:
        metastore.release(lease)
    return Decided(tuple(b.batch_id for b in held), sum(b.counts.staged for b in held), published)


def _held(metastore: Metastore, pipeline: Pipeline, checkpoint: Checkpoint | None) -> list[Batch]:
    held = metastore.batches(pipeline.name, checkpoint.generation, statuses=("held",)) if checkpoint else []
    if not held:
        raise RefusedError(
            "slice.none-held",
            f"{pipeline.name} holds no slice back",
            where=f"pipeline {pipeline.name}",
            do=f"`drawdown runs {pipeline.name}` shows what its runs came to",
        )
    return held


def _carry_out(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    choice: Choice,
    held: list[Batch],
) -> Published:
    if choice == "release":
        return publish_released(metastore, lease, project, pipeline, checkpoint)
    _refuse_visible(project, pipeline, held)
    ids = [batch.batch_id for batch in held]
    files = metastore.staged_files(pipeline.name, checkpoint.generation, ids, table="output")
    # Discarded first: files of a batch that could still be published must not go.
    metastore.discard_batches(lease, checkpoint.generation, ids)
    storage = Storage(project.storage_root)
    for _, file in files:
        storage.delete(storage.relative(file.path))
    return publish_passed(metastore, lease, project, pipeline, checkpoint)


def _refuse_visible(project: Project, pipeline: Pipeline, held: list[Batch]) -> None:
    """A release commits to the table first and notes it then: what it made visible cannot be discarded."""
    if seen := visible(project, pipeline, held):
        raise RefusedError(
            "slice.visible",
            f"a release of {pipeline.name} has made {len(seen)} of the {len(held)} held batches visible",
            where=f"pipeline {pipeline.name}",
            do=f"complete it: drawdown release {pipeline.name} --why ...",
        )
