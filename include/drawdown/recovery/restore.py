"""Restore: puts back a snapshot's checkpoint, carriers, missing staged files and metastore rows.

 1  refuse if the sink is ahead and cannot or must not go back, or if the copy is damaged
 2  mark the checkpoint: no run starts until the mark is removed (verify.py)
 3  reset the sink, if requested
 4  put the files back and remove those that are not in the snapshot
 5  put the metastore's rows back, in one transaction
 6  remove the mark
If it is interrupted after 2, running the command again completes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from drawdown.checkpoint import MARKS, RESTORING, CheckpointFiles, Verification, replace_with_checksum
from drawdown.errors import RefusedError, SpecError
from drawdown.metastore.records import Checkpoint, Lease, StagedTable
from drawdown.recovery.mark import mark, unmark
from drawdown.recovery.rewind import forget_batches
from drawdown.recovery.sink.ahead import refuse_ahead
from drawdown.recovery.sink.reset import (
    last_shown,
    refuse_behind,
    refuse_readers,
    refuse_stuck,
    take_sink_back,
)
from drawdown.recovery.snapshots import Snapshot, read_snapshot, snapshots
from drawdown.values.text import counted
from drawdown.workspace import Generation


def named_snapshot(generation: Generation, name: str) -> Snapshot:
    """Find a snapshot by its name or the beginning of it; ``latest`` is the newest.

    Raises:
        SpecError: ``checkpoint.no-snapshot``.
    """
    there = [each.name for each in snapshots(generation.storage, generation.pipeline.name)]
    found = there[-1:] if name == "latest" else [each for each in there if each.startswith(name)]
    if len(found) != 1:
        raise SpecError(
            "checkpoint.no-snapshot",
            f"{generation.pipeline.name} has"
            f" {counted(len(found), 'snapshot') if found else 'no snapshot'} {name}",
            do=f"name one of: {', '.join(there)}"
            if there
            else f"`drawdown checkpoint snapshot {generation.pipeline.name}` creates one",
        )
    return read_snapshot(generation.storage, f"{generation.folder}/snapshots/{found[0]}")


def restore(
    generation: Generation,
    snapshot: Snapshot,
    current: Callable[[], Lease],
    *,
    sink: bool,
    yes: bool = False,
) -> Snapshot:
    """Restore a snapshot, in the steps of this module's docstring.

    Args:
        sink: also reset the sink to the last batch of the snapshot's checkpoint.
        yes: continue even if streams over its table will read rows a second time.

    Raises:
        RefusedError: ``sink.ahead``, ``sink.behind``, ``sink.readers``, ``checkpoint.torn``, and as
            `refuse_stuck`. Nothing is touched then.
        SourceError: the storage or the sink cannot be reached.
    """
    storage, name = generation.storage, generation.pipeline.name
    generation = replace(generation, checkpoint=_noted(generation, snapshot))
    command = f"drawdown checkpoint restore {name} {snapshot.name}"
    if not sink:
        refuse_ahead(generation, snapshot.last_batch, command)
    else:
        refuse_stuck(generation, snapshot.last_batch)
        if not yes:
            refuse_readers(generation, snapshot.last_batch, f"{command} --sink")
    refuse_behind(generation, _shown_by(snapshot), f"snapshot {snapshot.name}")
    _refuse_torn(generation, snapshot)
    mark(generation, RESTORING, f"{snapshot.name}{' --sink' * sink}{' --yes' * yes}")
    if sink:
        take_sink_back(generation, snapshot.last_batch, current())
    _put_back(generation, f"{snapshot.path}/checkpoint", generation.path, current)
    carriers = f"{generation.folder}/carriers-{generation.number}"
    _put_back(generation, f"{snapshot.path}/carriers", carriers, current)
    for path, copy in snapshot.staged.items():
        if not storage.exists(path):
            replace_with_checksum(storage, path, storage.read_bytes(f"{snapshot.path}/staged/{copy}"))
    forget_batches(generation, snapshot.last_batch, current())
    generation.metastore.replace_generation(current(), generation.number, snapshot.rows, snapshot.last_batch)
    unmark(generation)
    return snapshot


def _shown_by(snapshot: Snapshot) -> dict[StagedTable, int]:
    ids = [row["batch_id"] for row in snapshot.rows["batches"] if row["status"] == "published"]
    files = [(row["batch_id"], row["table_name"]) for row in snapshot.rows["staged_files"]]
    return last_shown((each for each in ids if each <= snapshot.last_batch), files)


def _noted(generation: Generation, snapshot: Snapshot) -> Checkpoint:
    """Return the snapshot's generation; a metastore without one gets it from the restore."""
    known = generation.checkpoint or snapshot.checkpoint
    if known.generation != snapshot.generation:
        raise RefusedError(
            "checkpoint.other-generation",
            f"snapshot {snapshot.name} belongs to generation {snapshot.generation}, but generation"
            f" {known.generation} is live",
            where=generation.storage.path(snapshot.path),
            do=f"`drawdown checkpoint show {generation.pipeline.name}` lists the snapshots of each"
            " generation",
        )
    return known


def _refuse_torn(generation: Generation, snapshot: Snapshot) -> None:
    storage, path = generation.storage, f"{snapshot.path}/checkpoint"
    copied = CheckpointFiles(storage, path, generation.fingerprint.get("source_order", ()))
    torn = [fault for fault in Verification(storage, copied).everything() if fault.needed]
    if torn:
        raise RefusedError(
            "checkpoint.torn",
            f"the snapshot itself is damaged: {torn[0].what}",
            where=storage.path(torn[0].path),
            do=f"restore another one: `drawdown checkpoint show {generation.pipeline.name}` lists them",
        )


def _put_back(generation: Generation, copy: str, target: str, current: Callable[[], Lease]) -> None:
    storage = generation.storage
    for info in list(storage.walk(target)):
        if info.name not in MARKS:
            storage.delete(info.relative)
    for info in list(storage.walk(copy)):
        current()
        storage.copy(info.relative, f"{target}/{info.relative[len(copy) + 1 :]}")
