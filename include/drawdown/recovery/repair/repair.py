"""Repair: fixes every fault that can be fixed without loss, and keeps copies of the old files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drawdown.checkpoint import CheckpointFault, checksum_path, delete_with_checksum, replace_with_checksum
from drawdown.errors import RefusedError
from drawdown.metastore.records import Lease
from drawdown.recovery.repair.advice import torn_error
from drawdown.recovery.repair.faults import all_faults
from drawdown.recovery.repair.fixes import Fix, Fixes, touched
from drawdown.recovery.request import folder_name
from drawdown.storage import FileInfo, Storage
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Repaired:
    """The result of a repair.

    Attributes:
        kept: the folder with the old files, relative to the storage root.
        left: faults that are history and cannot be fixed; no run needs those files.
    """

    fixed: tuple[Fix, ...]
    left: tuple[CheckpointFault, ...]
    kept: str


def repair(generation: Generation, current: Callable[[], Lease]) -> Repaired:
    """Fix what can be fixed.

    Raises:
        RefusedError: ``checkpoint.torn`` when a file that the next run needs can only come from a copy:
            nothing is changed then; ``checkpoint.whole``: there is nothing to repair.
        SourceError: the storage or the sink cannot be reached.
    """
    known, storage = Fixes(generation), generation.storage
    found = [(fault, known.of(fault)) for fault in all_faults(generation)]
    if not found:
        raise RefusedError(
            "checkpoint.whole",
            f"all checkpoint files of {generation.pipeline.name} are intact",
            where=storage.path(generation.path),
            do=f"`drawdown run {generation.pipeline.name}` continues",
        )
    stuck = [fault for fault, fix in found if fix is None and fault.needed]
    if stuck:
        raise torn_error(generation, stuck)
    kept = f"{generation.folder}/repaired/{folder_name()}"
    fixes = [fix for _, fix in found if fix is not None]
    for fix in fixes:
        for path in touched(fix):
            for info in _in_the_way(storage, path):
                storage.copy(info.relative, f"{kept}/{info.relative}")
    for fix in fixes:
        with generation.metastore.fenced(current()):
            _carry_out(generation, fix)
    left = [fault for fault, fix in found if fix is None]
    return Repaired(tuple(fixes), tuple(left), kept)


def _in_the_way(storage: Storage, path: str) -> list[FileInfo]:
    """Return the files in the way: the file itself, the files of a folder with its name, or a file with its
    folder's name."""
    folder = storage.info(path.rpartition("/")[0])
    return [*storage.walk(path), *([folder] if folder else [])]


def _make_way(storage: Storage, path: str) -> None:
    """Remove what `_in_the_way` returns, except the file itself, which is replaced in one step."""
    folder = path.rpartition("/")[0]
    if storage.info(folder) is not None:
        storage.delete(folder)
    elif storage.info(path) is None:
        storage.delete(path)


def _carry_out(generation: Generation, fix: Fix) -> None:
    storage = generation.storage
    for path in fix.remove:
        delete_with_checksum(storage, path)
    for path, content in fix.write.items():
        _make_way(storage, path)
        replace_with_checksum(storage, path, content)
    for path in fix.checksums:
        storage.delete(checksum_path(path))
