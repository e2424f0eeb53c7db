"""Repair: mend every fault that can be mended without loss, each with a copy of what was there kept aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drawdown.checkpoint import CheckpointFault, checksum_path, delete_with_checksum, replace_with_checksum
from drawdown.errors import RefusedError
from drawdown.metastore.records import Lease
from drawdown.recovery.advice import torn_error
from drawdown.recovery.faults import all_faults
from drawdown.recovery.mending import Mending, Repair, touched
from drawdown.recovery.request import folder_name
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Repaired:
    """What a repair did.

    Attributes:
        kept: the folder with what was there before, relative to the storage root.
        left: faults that are history and cannot be mended; no run needs those files.
    """

    mended: tuple[Repair, ...]
    left: tuple[CheckpointFault, ...]
    kept: str


def repair(generation: Generation, current: Callable[[], Lease]) -> Repaired:
    """Mend what can be mended.

    Raises:
        RefusedError: ``checkpoint.torn`` when a file that the next run needs can only come from a copy:
            nothing is changed then; ``checkpoint.whole``: there is nothing to repair.
        SourceError: the storage or the sink cannot be reached.
    """
    mending, storage = Mending(generation), generation.storage
    found = [(fault, mending.of(fault)) for fault in all_faults(generation)]
    if not found:
        raise RefusedError(
            "checkpoint.whole",
            f"every file of the checkpoint of {generation.pipeline.name} is whole",
            where=storage.path(generation.path),
            do=f"`drawdown run {generation.pipeline.name}` goes on",
        )
    stuck = [fault for fault, mend in found if mend is None and fault.needed]
    if stuck:
        raise torn_error(generation, stuck)
    kept = f"{generation.folder}/repaired/{folder_name()}"
    mends = [mend for _, mend in found if mend is not None]
    for mend in mends:
        for path in touched(mend):
            if storage.exists(path):
                storage.copy(path, f"{kept}/{path}")
    for mend in mends:
        with generation.metastore.fenced(current()):
            _carry_out(generation, mend)
    left = [fault for fault, mend in found if mend is None]
    return Repaired(tuple(mends), tuple(left), kept)


def _carry_out(generation: Generation, mend: Repair) -> None:
    storage = generation.storage
    for path in mend.remove:
        delete_with_checksum(storage, path)
    for path, content in mend.write.items():
        replace_with_checksum(storage, path, content)
    for path in mend.checksums:
        storage.delete(checksum_path(path))
