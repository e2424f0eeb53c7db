"""Drops quarantined rows: a decision under the lease, with a run record. Needs no Spark.

The rows stay in the Delta table, where they can be read; they are no longer open and no replay includes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.errors import DrawdownError
from drawdown.fault_points import durable
from drawdown.metastore.records import Lease, QuarantineDecision, Run
from drawdown.quarantine.row_states import Choice, SetAside, folder_of, set_aside, write_keys
from drawdown.recovery.repair.advice import refuse_cut_off
from drawdown.spec import Pipeline
from drawdown.values.text import counted
from drawdown.workspace import Generation, Workspace

KIND = "quarantine-drop"
_DROPPABLE = ("open", "fed")


@dataclass(frozen=True)
class Drop:
    """Which rows are dropped, by whom and why.

    Attributes:
        shown: keys of the rows that a person has confirmed; None: no confirmation, all matching rows.
    """

    choice: Choice
    run_id: str
    holder: str
    by: str
    why: str
    shown: frozenset[str] | None = None


def droppable(workspace: Workspace, pipeline: Pipeline, choice: Choice) -> list[SetAside]:
    """Return the chosen rows without a decision. Raises as `set_aside`."""
    rows = set_aside(workspace, pipeline)
    return [row for row in rows if row.state in _DROPPABLE and choice.fits(row)]


def drop(workspace: Workspace, pipeline: Pipeline, asked: Drop) -> int:
    """Drop the chosen rows without a decision; returns how many. Zero is not an error and leaves no record.

    Raises:
        BusyError: a run holds the lease.
        RefusedError, SourceError: as `set_aside` and `refuse_cut_off`; nothing is decided then.
    """
    lease = workspace.metastore.acquire(
        pipeline.name, asked.holder, asked.run_id, workspace.project.lease_ttl.delta
    )
    try:
        refuse_cut_off(Generation.of(workspace, pipeline))
        rows = droppable(workspace, pipeline, asked.choice)
        if asked.shown is not None:
            # Rows quarantined after the confirmation are not included.
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
        workspace.metastore.finish_run(
            asked.run_id, "succeeded", stop_reason=f"{counted(len(rows), 'row')} dropped"
        )
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
