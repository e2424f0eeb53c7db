"""What a holder of a lease left under way is brought to its end by the next holder, before it does anything.

Each change of a table is in the register before its first file is written. Who takes a lease finds those
that older holders of it left open, and closes each in the one way that its kind has:

- a drain staged files in a folder of its own: what no batch has noted and no version names goes;
- any other change is one commit: the sink is asked whether it has it. If not, the sink is fenced, so that a
  holder who only slept cannot make it any more.

The times of files decide nothing. What the register does not list, older files and those of others, is
left alone here: upkeep removes what nobody names once it is older than its retention.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from drawdown.changes.protocol import ChangedMeanwhileError, conflicts_explained, transaction_id
from drawdown.delta.log import TableLog
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import Change, ChangeState, Lease, StagedFile
from drawdown.sinks.targets import target_of
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.workspace import Workspace

_ATTEMPTS = 5
"""A fence that a commit came in between of is made again: an older holder has few commits left to make."""


def clean_up_changes(workspace: Workspace, lease: Lease, pipeline: Pipeline) -> list[Change]:
    """Close every change that an older holder of this lease left open.

    Returns:
        Those changes.

    Raises:
        SourceError: a sink does not answer; the same call may be made again.
        RefusedError: ``lease.lost``.
    """
    left = [
        change
        for change in workspace.metastore.open_changes(pipeline.name)
        if change.lease == lease.name and change.epoch < lease.epoch
    ]
    for change in left:
        workspace.metastore.check_lease(lease)
        workspace.metastore.end_changes([change.change_id], _closed(workspace, lease, pipeline, change))
    return left


def _closed(workspace: Workspace, lease: Lease, pipeline: Pipeline, change: Change) -> ChangeState:
    if change.kind == "drain":
        storage = workspace.storage
        generation = workspace.metastore.batches(change.pipeline, change.generation)
        noted = workspace.metastore.staged_files(
            change.pipeline, change.generation, [batch.batch_id for batch in generation]
        )
        remove_unnoted(storage, change, (file for _, file in noted))
        return "given-up"
    app_id = transaction_id(pipeline.name_in_sink, change.generation, change.table)
    for attempt in range(_ATTEMPTS):
        target = target_of(workspace.project, pipeline, change.table)
        if target is None or target.holds(change, app_id):
            return "committed"
        try:
            with (
                conflicts_explained(change.pipeline, change.table)
                if attempt + 1 == _ATTEMPTS
                else nullcontext()
            ):
                target.fence(lease)
        except ChangedMeanwhileError:
            # A holder who was not dead has made a commit since the look: perhaps this one.
            continue
        # Or right before the fence, in a sink that does not say so.
        again = target_of(workspace.project, pipeline, change.table)
        return "committed" if again is not None and again.holds(change, app_id) else "given-up"
    raise AssertionError("the last attempt returns or raises")


def remove_unnoted(storage: Storage, change: Change, noted: Iterable[StagedFile]) -> int:
    """Remove the files of a finished drain that no batch and no version names; returns how many.

    Args:
        noted: files of batches of its generation; those that are elsewhere do not matter.
    """
    assert change.place is not None
    infos = list(storage.walk(change.place))
    keep = {file.path for file in noted} | _named(storage, change) if infos else set()
    gone = [info for info in infos if info.path not in keep]
    if len(gone) == len(infos):
        storage.delete(change.place)
        return len(gone)
    for info in gone:
        storage.delete(info.relative)
    # The log of staging.py's table; a folder with a log of its own would be taken for somebody's table.
    storage.delete(f"{change.place}/_delta_log")
    return len(gone)


def _named(storage: Storage, change: Change) -> set[str]:
    """What the table's versions name since the drain began, whatever the metastore knows (an older copy of
    it may have been restored)."""
    assert change.place is not None
    folder = change.place.rsplit("/", 2)[0]
    if change.based_on is None or not DeltaTableFiles(storage.path(folder)).exists():
        return set()
    return TableLog(storage, storage.path(folder)).named_since(change.based_on)
