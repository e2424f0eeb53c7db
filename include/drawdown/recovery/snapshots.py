"""Snapshots: copies of a checkpoint and its metastore records, in ``snapshots/<time>``.

A snapshot contains everything for a restore except the sink:
- ``checkpoint/``: every file of the generation, but for half-written ones;
- ``carriers/``: event times that a batch, possibly already planned, still has to read;
- ``staged/``: the output files of batches that were not published yet. A publish or a clean-up may remove
  them, and the restored batches would name missing files;
- ``snapshot.json``: the metastore's rows of the generation. It is written last: a folder without it is an
  interrupted snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from drawdown.errors import RefusedError
from drawdown.layout import snapshots_of
from drawdown.metastore.records import BatchStatus, Checkpoint, Lease
from drawdown.recovery.repair.faults import all_faults, shown_batches
from drawdown.recovery.request import folder_name
from drawdown.storage import Storage
from drawdown.values.interval import EPOCH
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
        shown: by table of the sink, its last batch.
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
        """Return the metastore's record of the generation."""
        [row] = self.rows["checkpoints"]
        return Checkpoint(**{**row, "created_at": EPOCH + timedelta(microseconds=row["created_at"])})


def snapshots(storage: Storage, pipeline: str) -> list[Snapshot]:
    """Return the finished snapshots of a pipeline, oldest first."""
    folder = snapshots_of(pipeline)
    return [read_snapshot(storage, f"{folder}/{name}") for name in snapshot_names(storage, pipeline)]


def snapshot_names(storage: Storage, pipeline: str) -> list[str]:
    """Return the names of a pipeline's finished snapshots, oldest first."""
    found = storage.list_files(f"{snapshots_of(pipeline)}/*/{MANIFEST}")
    return [info.relative.split("/")[-2] for info in found]


def read_snapshot(storage: Storage, path: str) -> Snapshot:
    """Read one snapshot by its folder. Raises FileNotFoundError if it does not exist or is not finished."""
    noted = json.loads(storage.read_bytes(f"{path}/{MANIFEST}"))
    return Snapshot(name=path.rpartition("/")[2], path=path, **noted)


def take_snapshot(generation: Generation, current: Callable[[], Lease]) -> Snapshot:
    """Copy the active generation.

    Args:
        current: returns the current lease; raises if it was lost.

    Raises:
        RefusedError: ``checkpoint.none``: there is no checkpoint; ``checkpoint.torn``: a copy would be
            useless.
        SourceError: the storage or the sink cannot be reached.
    """
    storage, name = generation.storage, generation.pipeline.name
    last = generation.files.last_commit_batch()
    if generation.checkpoint is None or not generation.files.exists:
        raise RefusedError(
            "checkpoint.none",
            f"{name} has no checkpoint to copy",
            where=storage.path(generation.path),
            do=f"`drawdown checkpoint verify {name}` shows details; before the first run there is no"
            " checkpoint",
        )
    torn = [fault for fault in all_faults(generation) if fault.needed]
    if torn:
        raise RefusedError(
            "checkpoint.torn",
            f"a snapshot now would copy a damaged checkpoint: {torn[0].what}",
            where=storage.path(torn[0].path),
            do=f"`drawdown checkpoint verify {name}` lists the faults and their fixes",
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
    """Copy all but half-written files; returns their sizes."""
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
