"""Dropping set-aside rows: a decision that nobody wants them, under the lease, with a run record. No Spark.

The rows stay in the Delta table, where they can be read; they are not open any more and no replay takes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.errors import DrawdownError
from drawdown.fault_points import durable
from drawdown.metastore.records import Lease, QuarantineDecision, Run
from drawdown.quarantine.rows import Choice, SetAside, folder_of, set_aside, write_keys
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

KIND = "quarantine-drop"
_DROPPABLE = ("open", "fed")


@dataclass(frozen=True)
class Drop:
    """Which rows are dropped, by whom and why.

    Attributes:
        shown: keys of the rows that somebody has agreed to; None: nobody was asked, all that fit are meant.
    """

    choice: Choice
    run_id: str
    holder: str
    by: str
    why: str
    shown: frozenset[str] | None = None


def droppable(workspace: Workspace, pipeline: Pipeline, choice: Choice) -> list[SetAside]:
    """The chosen rows that nothing was decided about. Raises as `set_aside`."""
    rows = set_aside(workspace, pipeline)
    return [row for row in rows if row.state in _DROPPABLE and choice.fits(row)]


def drop(workspace: Workspace, pipeline: Pipeline, asked: Drop) -> int:
    """Drop the chosen rows that nothing was decided about; how many. None is no error, and leaves no record.

    Raises:
        BusyError: a run holds the lease.
        RefusedError, SourceError: as `set_aside`; nothing is decided then.
    """
    lease = workspace.metastore.acquire(
        pipeline.name, asked.holder, asked.run_id, workspace.project.lease_ttl.delta
    )
    try:
        rows = droppable(workspace, pipeline, asked.choice)
        if asked.shown is not None:
            # What was set aside since the question was asked is not in the answer.
            rows = [row for row in rows if row.key in asked.shown]
        if not rows:
            return 0
        origin = {"by": asked.by, "why": asked.why, "rows": len(rows), **asked.choice.said}
        workspace.metastore.start_run(
            Run(asked.run_id, pipeline.name, kind=KIND, holder=asked.holder, origin=origin)
        )
        try:
            _decide(workspace, pipeline, lease, asked, rows)
        except DrawdownError as error:
            workspace.metastore.finish_run(asked.run_id, "failed", error=error.as_dict())
            raise
        workspace.metastore.finish_run(asked.run_id, "succeeded", stop_reason=f"{len(rows):,} row(s) dropped")
    finally:
        workspace.metastore.release(lease)
    return len(rows)


def _decide(
    workspace: Workspace,
    pipeline: Pipeline,
    lease: Lease,
    asked: Drop,
    rows: Sequence[SetAside],
) -> None:
    storage = workspace.storage
    checkpoint = workspace.metastore.active_checkpoint(pipeline.name)
    keys = write_keys(storage, folder_of(pipeline, asked.run_id), rows)
    with durable("drop.note"):
        workspace.metastore.note_decision(
            lease,
            QuarantineDecision(
                asked.run_id,
                pipeline.name,
                "drop",
                checkpoint.generation if checkpoint else 0,
                len(rows),
                keys,
                origin={"by": asked.by, "why": asked.why},
            ),
        )
