"""Decisions about held slices: release publishes a slice unchanged, discard drops it. Neither needs Spark.

Both take the pipeline's lease and leave a run record with who decided, and why. The checkpoint is not
touched: the input of a held slice is not read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from drawdown.errors import DrawdownError, RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, HeldSlice, Lease, Run
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.publishing.commit_groups import tell_commit_groups
from drawdown.publishing.publish import Published, is_visible, publish_held, publish_passed
from drawdown.recovery.repair.advice import refuse_cut_off
from drawdown.recovery.repair.older_sink import refuse_older_sink
from drawdown.sinks.unnamed_files import remove_unnamed
from drawdown.spec import Pipeline
from drawdown.values.text import counted, utc
from drawdown.workspace import Generation, Workspace

Choice = Literal["release", "discard"]
_PAST = {"release": "released", "discard": "discarded"}


@dataclass(frozen=True)
class Decision:
    """A decision about held slices of a pipeline: what, by whom and why.

    Attributes:
        key: `HeldSlice.key` of one slice; None: all held slices.
        origin: what the run record keeps besides who and why.
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
    """The result of a decision: the batches that were held, their rows, and what is visible now."""

    batch_ids: tuple[int, ...]
    rows: int
    published: Published


def decide(workspace: Workspace, pipeline: Pipeline, decision: Decision) -> Decided:
    """Release or discard held slices of a pipeline, then publish the batches that waited behind them.

    Raises:
        BusyError: a run holds the lease.
        RefusedError: ``slice.none-held``; ``slice.decided``: already decided; ``slice.out-of-order``: an
            earlier slice is held; ``slice.visible``: an earlier release died half-way; ``sink.older-copy``:
            the sink lacks published batches, and what is published now would hide it; as `refuse_cut_off`.
        SourceError: the sink cannot be reached; nothing was decided, or repeating the call completes it.
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
            notices = tell_commit_groups(Generation.of(workspace, pipeline))
        except DrawdownError as error:
            workspace.metastore.finish_run(decision.run_id, "failed", error=error.as_dict())
            raise
        workspace.metastore.finish_run(
            decision.run_id,
            "succeeded",
            generation=held[0].verdict.generation,
            counts=Counts(published=published.rows),
            batches=len(ids),
            notices=notices,
            stop_reason=_what_was_done(decision.choice, held, published.rows),
        )
    finally:
        workspace.metastore.release(lease)
    return Decided(tuple(ids), sum(slice_.rows for slice_ in held), published)


def decision_about(metastore: Metastore, pipeline: str, key: str) -> Run | None:
    """Return the run record of the decision about a slice; None if there is no decision yet."""
    for run in metastore.runs_of_origin({}, pipeline=pipeline, kinds=get_args(Choice)):
        if run.state == "succeeded" and key in run.origin["slices"]:
            return run
    return None


def decided_text(metastore: Metastore, pipeline: str, key: str) -> str:
    """Describe in one sentence what happened to a slice that is no longer held."""
    run = decision_about(metastore, pipeline, key)
    if run is None:
        return f"the slice of {pipeline} is no longer held"
    at = utc(run.ended_at) if run.ended_at is not None else "an unknown time"
    return (
        f"the slice of {pipeline} was {_PAST[run.kind]} by {run.origin['by']} at {at} ({run.origin['why']})"
    )


def decision_text(run: Run) -> str:
    """What a decision did, who made it and why; `run` is its record, which an older version left shorter."""
    first, last = run.origin["batches"]
    done = run.stop_reason or f"batches {first} to {last} {_PAST[run.kind]}"
    return f"{run.pipeline}: {done}, by {run.origin['by']}: {run.origin['why']}"


def decisions_on(metastore: Metastore, run: Run) -> list[str]:
    """What was decided about the slices that the audit of a run has held, one sentence for each decision."""
    decisions = metastore.runs_of_origin({}, pipeline=run.pipeline, kinds=get_args(Choice))
    return [
        decision_text(done)
        for done in decisions
        if done.state == "succeeded"
        and any(key.startswith(f"{run.run_id}.") for key in done.origin["slices"])
    ]


def _what_was_done(choice: Choice, held: Sequence[HeldSlice], published: int) -> str:
    rows = counted(sum(slice_.rows for slice_ in held), "row")
    done = f"{rows} of {', '.join(map(str, held))} {_PAST[choice]}"
    return f"{done}; {counted(published, 'row')} became visible" if published else done


def _chosen(metastore: Metastore, pipeline: Pipeline, decision: Decision) -> list[HeldSlice]:
    held = metastore.held_slices(pipeline.name)
    if decision.key is None:
        if not held:
            raise RefusedError(
                "slice.none-held",
                f"{pipeline.name} has no held slice",
                where=f"pipeline {pipeline.name}",
                do=f"`drawdown runs {pipeline.name}` shows the results of its runs",
            )
        return held
    chosen = [slice_ for slice_ in held if slice_.key == decision.key]
    if not chosen:
        raise RefusedError(
            "slice.decided",
            decided_text(metastore, pipeline.name, decision.key),
            where=f"pipeline {pipeline.name}",
            do=f"nothing was changed; `drawdown runs {pipeline.name}` shows what happened to it",
        )
    if decision.choice == "release" and pipeline.sink.ordered and chosen[0] is not held[0]:
        raise RefusedError(
            "slice.out-of-order",
            f"{held[0]} of {pipeline.name}, held before {chosen[0]}, also waits for a decision",
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
    refuse_cut_off(generation)
    refuse_older_sink(generation)
    # Before and after each: batches of a crashed run come before it, waiting batches after it.
    published = publish_passed(generation, lease)
    for slice_ in held:
        if choice == "release":
            published += publish_held(workspace, lease, pipeline, slice_)
        else:
            _discard(generation, lease, slice_)
        published += publish_passed(generation, lease)
    return published


def _discard(generation: Generation, lease: Lease, held: HeldSlice) -> None:
    workspace, pipeline = generation.workspace, generation.pipeline
    # A release commits to the table before it is recorded: what is visible cannot be discarded.
    if is_visible(workspace.project, pipeline, held):
        raise RefusedError(
            "slice.visible",
            f"an unfinished release of {pipeline.name} has made {held} visible, completely or in part",
            where=f"pipeline {pipeline.name}",
            do=f"`drawdown release {pipeline.name} --why ...` completes it",
        )
    files = generation.staged_files(held.batch_ids, table="output")
    # Discarded first: a batch that can still be published must keep its files.
    workspace.metastore.discard_batches(lease, generation.number, held.batch_ids)
    remove_unnamed(generation, (file for _, file in files))
