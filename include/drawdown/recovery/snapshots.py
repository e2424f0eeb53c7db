"""Snapshots: a copy of a checkpoint and of what the metastore knows of it, in ``snapshots/<time>``.

What a restore needs, beside the sink itself, is in it:
- ``checkpoint/``: every file of the generation, but for half-written ones;
- ``carriers/``: event times that wait to be read by a batch which may be planned already;
- ``staged/``: the output files of batches that were not published yet. A publish or a sweep may take them
  away, and the restored batches would name files that are gone;
- ``snapshot.json``: the metastore's rows of the generation. It is written last: a folder without it is the
  rest of a snapshot that was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from drawdown.errors import RefusedError
from drawdown.layout import snapshots_of
from drawdown.metastore.columns import EPOCH
from drawdown.metastore.records import BatchStatus, Checkpoint, Lease
from drawdown.recovery.faults import all_faults, shown_batches
from drawdown.recovery.request import folder_name
from drawdown.storage import Storage
from drawdown.workspace import Generation

MANIFEST = "snapshot.json"
_WAITING: tuple[BatchStatus, ...] = ("committed", "passed", "held")


@dataclass(frozen=True)
class Snapshot:
    """One finished snapshot.

    Attributes:
        name: of its folder; sorts by time.
        path: of its folder, relative to the storage root.
        last_batch: the last batch that Spark had committed, -1 for none.
        shown: the last batch that each table of the sink held.
        staged: path of a staged file relative to the storage root to its copy's name below ``staged/``.
        rows: the metastore's rows by table, see `Metastore.export_generation`.
    """

    name: str
    path: str
    generation: int
    last_batch: int
    shown: dict[str, int]
    files: int
    bytes: int
    staged: dict[str, str]
    rows: dict[str, list[dict[str, Any]]]

    @property
    def checkpoint(self) -> Checkpoint:
        """What the metastore had noted of the generation."""
        [row] = self.rows["checkpoints"]
        return Checkpoint(**{**row, "created_at": EPOCH + timedelta(microseconds=row["created_at"])})


def snapshots(storage: Storage, pipeline: str) -> list[Snapshot]:
    """The finished snapshots of a pipeline, oldest first."""
    folder = snapshots_of(pipeline)
    return [read_snapshot(storage, f"{folder}/{name}") for name in snapshot_names(storage, pipeline)]


def snapshot_names(storage: Storage, pipeline: str) -> list[str]:
    """Of the finished snapshots of a pipeline, oldest first."""
    found = storage.list_files(f"{snapshots_of(pipeline)}/*/{MANIFEST}")
    return [info.relative.split("/")[-2] for info in found]


def read_snapshot(storage: Storage, path: str) -> Snapshot:
    """One snapshot by its folder. Raises FileNotFoundError when it is not there, or not finished."""
    noted = json.loads(storage.read_bytes(f"{path}/{MANIFEST}"))
    return Snapshot(name=path.rpartition("/")[2], path=path, **noted)


def take_snapshot(generation: Generation, current: Callable[[], Lease]) -> Snapshot:
    """Copy the active generation.

    Args:
        current: gives the lease it is made under, or raises when it was lost.

    Raises:
        RefusedError: ``checkpoint.none``: there is no checkpoint; ``checkpoint.torn``: a copy of it would
            help nobody.
        SourceError: the storage or the sink cannot be reached.
    """
    storage, name = generation.storage, generation.pipeline.name
    last = generation.files.last_commit_batch()
    if generation.checkpoint is None or not generation.files.exists:
        raise RefusedError(
            "checkpoint.none",
            f"{name} has no checkpoint that could be copied",
            where=storage.path(generation.path),
            do=f"`drawdown checkpoint verify {name}` says more; before the first run there is nothing",
        )
    torn = [fault for fault in all_faults(generation) if fault.needed]
    if torn:
        raise RefusedError(
            "checkpoint.torn",
            f"a snapshot now would keep a checkpoint that is not whole: {torn[0].what}",
            where=storage.path(torn[0].path),
            do=f"`drawdown checkpoint verify {name}` lists what is wrong and what fixes it",
        )
    path = f"{generation.folder}/snapshots/{folder_name()}"
    copied = _copy_folder(storage, generation.path, f"{path}/checkpoint", current)
    carriers = f"{generation.folder}/carriers-{generation.number}"
    copied += _copy_folder(storage, carriers, f"{path}/carriers", current)
    staged = _copy_staged(generation, path, current)
    noted = {
        "generation": generation.number,
        "last_batch": -1 if last is None else last,
        "shown": shown_batches(generation),
        "files": len(copied) + len(staged),
        "bytes": sum(copied),
        "staged": staged,
        "rows": generation.metastore.export_generation(name, generation.number),
    }
    storage.write_atomic(f"{path}/{MANIFEST}", json.dumps(noted).encode())
    return read_snapshot(storage, path)


def _copy_folder(storage: Storage, folder: str, target: str, current: Callable[[], Lease]) -> list[int]:
    """Copy all but half-written files; their sizes."""
    sizes = []
    for info in list(storage.walk(folder)):
        if not info.name.endswith(".tmp"):
            current()
            storage.copy(info.relative, f"{target}/{info.relative[len(folder) + 1 :]}")
            sizes.append(info.size)
    return sizes


def _copy_staged(generation: Generation, path: str, current: Callable[[], Lease]) -> dict[str, str]:
    storage = generation.storage
    waiting = [batch.batch_id for batch in generation.batches(_WAITING)]
    staged: dict[str, str] = {}
    for batch, file in generation.staged_files(waiting, "output"):
        current()
        source = storage.relative(file.path)
        copy = f"{batch}-{len(staged)}"
        storage.copy(source, f"{path}/staged/{copy}")
        staged[source] = copy
    return staged
