"""Repair: fix every fault that can be fixed without loss, each with a copy of what was there kept aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drawdown.checkpoint import CheckpointFault, checksum_path, delete_with_checksum, replace_with_checksum
from drawdown.errors import RefusedError
from drawdown.metastore.records import Lease
from drawdown.recovery.advice import torn_error
from drawdown.recovery.faults import all_faults
from drawdown.recovery.fixes import Fix, Fixes, touched
from drawdown.recovery.request import folder_name
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Repaired:
    """What a repair did.

    Attributes:
        kept: the folder with what was there before, relative to the storage root.
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
            f"every file of the checkpoint of {generation.pipeline.name} is whole",
            where=storage.path(generation.path),
            do=f"`drawdown run {generation.pipeline.name}` goes on",
        )
    stuck = [fault for fault, fix in found if fix is None and fault.needed]
    if stuck:
        raise torn_error(generation, stuck)
    kept = f"{generation.folder}/repaired/{folder_name()}"
    fixes = [fix for _, fix in found if fix is not None]
    for fix in fixes:
        for path in touched(fix):
            if storage.exists(path):
                storage.copy(path, f"{kept}/{path}")
    for fix in fixes:
        with generation.metastore.fenced(current()):
            _carry_out(generation, fix)
    left = [fault for fault, fix in found if fix is None]
    return Repaired(tuple(fixes), tuple(left), kept)


def _carry_out(generation: Generation, fix: Fix) -> None:
    storage = generation.storage
    for path in fix.remove:
        delete_with_checksum(storage, path)
    for path, content in fix.write.items():
        replace_with_checksum(storage, path, content)
    for path in fix.checksums:
        storage.delete(checksum_path(path))
