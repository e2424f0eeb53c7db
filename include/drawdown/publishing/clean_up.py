"""Closes the changes that an earlier lease holder left open, before the next holder does anything.

Each change of a table is registered before its first file is written. A new lease holder finds the changes
that older holders left open and closes each, depending on its kind:

- a drain staged files in its own folder: files that no batch recorded and no table version names are deleted;
- any other change is one commit: ask the sink whether it was made. If not, fence the sink, so that an older
  holder that only stalled can no longer make it.

File times do not matter. Files that are not in the register (older ones, other people's) are not touched
here: upkeep removes unreferenced files after their retention.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from drawdown.changes.protocol import ChangedMeanwhileError, conflicts_explained, transaction_id
from drawdown.delta.log import TableLog
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import Change, ChangeState, Lease
from drawdown.sinks.targets import target_of
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.workspace import Workspace

_ATTEMPTS = 5
"""A fence that lost against a concurrent commit is tried again; an older holder has few commits left."""


def clean_up_changes(
    workspace: Workspace, lease: Lease, pipeline: Pipeline, name: str | None = None
) -> list[Change]:
    """Close every change that an older holder of this lease left open.

    Args:
        name: by which the register knows the pipeline, while it is renamed.

    Returns:
        The closed changes.

    Raises:
        SourceError: a sink does not answer; the call can be repeated.
        RefusedError: ``lease.lost``.
    """
    left = [
        change
        for change in workspace.metastore.open_changes(name or pipeline.name)
        if change.lease == lease.name and change.epoch < lease.epoch
    ]
    for change in left:
        workspace.metastore.check_lease(lease)
        workspace.metastore.end_changes([change.change_id], _closed(workspace, lease, pipeline, change))
    return left


def _closed(workspace: Workspace, lease: Lease, pipeline: Pipeline, change: Change) -> ChangeState:
    if change.kind == "drain":
        storage = workspace.storage
        assert change.place is not None
        # Only of its own folder: the history of all files may be long.
        place = storage.path_of_file(change.place)
        noted = workspace.metastore.files_below(change.pipeline, change.generation, place)
        remove_unnoted(storage, change, noted)
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
            # An older holder that was still alive has committed since the check: perhaps this change.
            continue
        # Or right before the fence, in a sink that does not report it.
        again = target_of(workspace.project, pipeline, change.table)
        return "committed" if again is not None and again.holds(change, app_id) else "given-up"
    raise AssertionError("unreachable: the last attempt returns or raises")


def remove_unnoted(storage: Storage, change: Change, noted: Iterable[str]) -> int:
    """Remove a finished drain's files that no batch and no table version names; returns the number removed.

    Args:
        noted: paths of the files recorded for batches of its generation; other folders do not matter.
    """
    assert change.place is not None
    infos = list(storage.walk(change.place))
    keep = set(noted) | _named(storage, change) if infos else set()
    gone = [info for info in infos if info.path not in keep]
    if len(gone) == len(infos):
        storage.delete(change.place)
        return len(gone)
    for info in gone:
        storage.delete(info.relative)
    # The log of staging.py's table: a folder with a Delta log would be mistaken for a user's table.
    storage.delete(f"{change.place}/_delta_log")
    return len(gone)


def _named(storage: Storage, change: Change) -> set[str]:
    """Return the files that table versions name since the drain began, independent of the metastore (which
    may be a restored older copy)."""
    assert change.place is not None
    folder = change.place.rsplit("/", 2)[0]
    if change.based_on is None or not DeltaTableFiles(storage.path(folder)).exists():
        return set()
    return TableLog(storage, storage.path(folder)).named_since(change.based_on)
