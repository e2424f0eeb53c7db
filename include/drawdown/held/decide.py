"""Deciding about held slices: release publishes one as it is, discard drops it. Neither needs Spark.

Both take the pipeline's lease and leave a run record that says who decided, and why. The checkpoint is
not touched: what a held slice was made of is not read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, HeldSlice, Lease, Run
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.publishing.publish import Published, is_visible, publish_held, publish_passed
from drawdown.spec import Pipeline
from drawdown.workspace import Generation, Workspace

Choice = Literal["release", "discard"]


@dataclass(frozen=True)
class Decision:
    """What is decided about held slices of a pipeline, by whom and why.

    Attributes:
        key: of the one slice it is about (`HeldSlice.key`); None: all that are held.
        origin: what the run record keeps beside who and why.
    """

    choice: Choice
    run_id: str
    holder: str
    by: str
    why: str
    key: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Decided:
    """What a decision came to: the batches that were held, their rows, and what is visible now."""

    batch_ids: tuple[int, ...]
    rows: int
    published: Published


def decide(workspace: Workspace, pipeline: Pipeline, decision: Decision) -> Decided:
    """Release or discard held slices of a pipeline, then publish what waited behind them.

    Raises:
        BusyError: a run holds the lease.
        RefusedError: ``slice.none-held``; ``slice.decided``: somebody else was first; ``slice.out-of-order``:
            an earlier slice is held; ``slice.visible``: a release of it died half-way.
        SourceError: the sink cannot be reached; nothing is decided then, or the same call completes it.
    """
    lease = workspace.metastore.acquire(
        pipeline.name, decision.holder, decision.run_id, workspace.project.lease_ttl.delta
    )
    try:
        clean_up_changes(workspace, lease, pipeline)
        held = _chosen(workspace.metastore, pipeline, decision)
        ids = [batch_id for slice_ in held for batch_id in slice_.batch_ids]
        who = {
            "by": decision.by,
            "why": decision.why,
            "slices": [slice_.key for slice_ in held],
            "batches": [ids[0], ids[-1]],
        }
        workspace.metastore.start_run(
            Run(
                decision.run_id,
                pipeline.name,
                kind=decision.choice,
                holder=decision.holder,
                origin={**decision.origin, **who},
            )
        )
        try:
            published = _carry_out(workspace, lease, pipeline, decision.choice, held)
        except DrawdownError as error:
            workspace.metastore.finish_run(decision.run_id, "failed", error=error.as_dict())
            raise
        counts = Counts(published=published.rows)
        generation = held[0].verdict.generation
        workspace.metastore.finish_run(
            decision.run_id, "succeeded", generation=generation, counts=counts, batches=len(ids)
        )
    finally:
        workspace.metastore.release(lease)
    return Decided(tuple(ids), sum(slice_.rows for slice_ in held), published)


def decision_about(metastore: Metastore, pipeline: str, key: str) -> Run | None:
    """The run record of the decision about a slice; None when nobody has decided."""
    for run in metastore.runs_of_origin({}, pipeline=pipeline, kinds=get_args(Choice)):
        if run.state == "succeeded" and key in run.origin["slices"]:
            return run
    return None


def decided_text(metastore: Metastore, pipeline: str, key: str) -> str:
    """What became of a slice that is not held any more, in one sentence."""
    run = decision_about(metastore, pipeline, key)
    if run is None:
        return f"the slice of {pipeline} is not held any more"
    past = {"release": "released", "discard": "discarded"}[run.kind]
    at = f"{run.ended_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"the slice of {pipeline} was {past} by {run.origin['by']} at {at} ({run.origin['why']})"


def _chosen(metastore: Metastore, pipeline: Pipeline, decision: Decision) -> list[HeldSlice]:
    held = metastore.held_slices(pipeline.name)
    if decision.key is None:
        if not held:
            raise RefusedError(
                "slice.none-held",
                f"{pipeline.name} holds no slice back",
                where=f"pipeline {pipeline.name}",
                do=f"`drawdown runs {pipeline.name}` shows what its runs came to",
            )
        return held
    chosen = [slice_ for slice_ in held if slice_.key == decision.key]
    if not chosen:
        raise RefusedError(
            "slice.decided",
            decided_text(metastore, pipeline.name, decision.key),
            where=f"pipeline {pipeline.name}",
            do=f"nothing was changed; `drawdown runs {pipeline.name}` shows what became of it",
        )
    if decision.choice == "release" and pipeline.sink.ordered and chosen[0] is not held[0]:
        raise RefusedError(
            "slice.out-of-order",
            f"{held[0]} of {pipeline.name}, held before {chosen[0]}, waits for a decision too",
            where=f"pipeline {pipeline.name}",
            do=f"decide about {held[0]} first",
        )
    return chosen


def _carry_out(
    workspace: Workspace,
    lease: Lease,
    pipeline: Pipeline,
    choice: Choice,
    held: list[HeldSlice],
) -> Published:
    generation = Generation.of(workspace, pipeline)
    # Before and after each: what a dead run left stands before it, what waited behind it.
    published = publish_passed(generation, lease)
    for slice_ in held:
        if choice == "release":
            published += publish_held(workspace, lease, pipeline, slice_)
        else:
            _discard(workspace, lease, pipeline, slice_)
        published += publish_passed(generation, lease)
    return published


def _discard(workspace: Workspace, lease: Lease, pipeline: Pipeline, held: HeldSlice) -> None:
    # A release commits to the table first and notes it then: what it made visible cannot be discarded.
    if is_visible(workspace.project, pipeline, held):
        raise RefusedError(
            "slice.visible",
            f"a release of {pipeline.name} has made {held} visible, or a part of it",
            where=f"pipeline {pipeline.name}",
            do=f"complete it: drawdown release {pipeline.name} --why ...",
        )
    generation = held.verdict.generation
    files = workspace.metastore.staged_files(pipeline.name, generation, held.batch_ids, table="output")
    # Discarded first: files of a batch that could still be published must not go.
    workspace.metastore.discard_batches(lease, generation, held.batch_ids)
    storage = workspace.storage
    for _, file in files:
        storage.delete(storage.relative(file.path))
