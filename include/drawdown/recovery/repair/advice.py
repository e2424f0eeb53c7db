"""Describes a checkpoint's faults as an error that names the command to fix them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from drawdown.checkpoint import MARKS, REWINDING, CheckpointFault
from drawdown.errors import DrawdownError, RefusedError
from drawdown.recovery.first_names import refuse_half_renamed
from drawdown.recovery.repair.faults import all_faults, restart_faults, shown_batches
from drawdown.recovery.repair.fixes import Fixes
from drawdown.recovery.rewind import kept_batches, logs_to_cut
from drawdown.recovery.sink.ahead import can_go_back
from drawdown.recovery.sink.reset import nearest_stop
from drawdown.recovery.snapshots import snapshots
from drawdown.workspace import Generation


def refuse_torn(generation: Generation) -> None:
    """Refuse a checkpoint from which the next run could not continue, as far as a quick check shows.

    Raises:
        RefusedError: as `torn_error`, naming file, cause and the command.
    """
    faults = restart_faults(generation)
    if faults:
        raise torn_error(generation, faults)


def refuse_cut_off(generation: Generation) -> None:
    """Refuse while a command that changes checkpoint and sink is unfinished: it died, or is under way.

    Raises:
        RefusedError: as `torn_error`, naming the command that completes it; ``rename.not-done``.
    """
    refuse_half_renamed(generation)
    if any(generation.storage.exists(f"{generation.path}/{name}") for name in MARKS):
        refuse_torn(generation)


def torn_state(generation: Generation) -> RefusedError | None:
    """Return the error for a run that Spark ended, if its checkpoint files are damaged."""
    faults = [fault for fault in all_faults(generation) if fault.needed]
    return torn_error(generation, faults) if faults else None


def torn_error(generation: Generation, faults: Sequence[CheckpointFault]) -> RefusedError:
    """Return the error for faults of files that the next run needs; the first is described in full.

    Its id is ``checkpoint.missing`` for the whole checkpoint, ``checkpoint.metadata-missing`` for that file
    alone, ``checkpoint.query-changed`` for another query's, else ``checkpoint.torn``.
    """
    cut_off = any(fault.path.rpartition("/")[2] in MARKS for fault in faults)
    if not cut_off and any(fault.path == generation.path for fault in faults):
        return _missing(generation)
    first, *others = faults
    kinds = {fault.kind if fault.part == "metadata" else "torn" for fault in faults}
    more = f"; and {len(others)} more" if others else ""
    return RefusedError(
        "checkpoint.metadata-missing"
        if kinds == {"missing"}
        else "checkpoint.query-changed"
        if kinds == {"foreign"}
        else "checkpoint.torn",
        f"{first.part} of the checkpoint of {generation.pipeline.name}: {first.what}{more}",
        where=generation.storage.path(first.path),
        do=way_out(generation, faults),
    )


def _missing(generation: Generation) -> RefusedError:
    """An empty checkpoint over a filled sink: the sink belongs to the one that is lost."""
    return RefusedError(
        "checkpoint.missing",
        f"the checkpoint of {generation.pipeline.name} is missing or empty, but its batches are in the sink:"
        " a new checkpoint would write every row a second time",
        where=generation.storage.path(generation.path),
        do=copy_back(generation),
    )


def way_out(generation: Generation, faults: Sequence[CheckpointFault]) -> str:
    """Return the command that fixes all of these, or a sentence if there is none."""
    name = generation.pipeline.name
    if _fixable(generation, faults):
        return f"`drawdown checkpoint repair {name}` fixes it without loss, and keeps a copy of the old files"
    state = [fault.path for fault in faults if fault.part == "state"]
    return copy_back(generation, state if len(state) == len(faults) else ())


def copy_back(generation: Generation, state: Sequence[str] = ()) -> str:
    """Return the command that restores files which exist only in a copy.

    Args:
        state: the files, if all belong to the state: an earlier batch may not need them.
    """
    name, storage = generation.pipeline.name, generation.storage
    for mark, command in MARKS.items():
        if storage.exists(f"{generation.path}/{mark}"):
            given = (storage.read_bytes(f"{generation.path}/{mark}").decode().splitlines() or [""])[0]
            if mark == REWINDING and not _can_rewind(generation, given):
                continue
            return f"`drawdown checkpoint {command} {name} {given}` completes it"
    of_this = [s for s in snapshots(storage, name) if s.generation == generation.number]
    if of_this:
        newest = of_this[-1]
        flag = _sink_flag(generation, newest.last_batch)
        return f"`drawdown checkpoint restore {name} {newest.name}{flag}` restores the newest snapshot"
    whole = _batch_to_go_back_to(generation, kept_batches(generation, frozenset(state))) if state else None
    if whole is not None:
        return (
            f"`drawdown checkpoint rewind {name} --to {whole} --sink` goes back to the last batch with"
            " intact state, including the sink, and the next run replays the later batches; there is no"
            " snapshot"
        )
    return (
        "restore the files from your own copy, or read everything again into a new pipeline folder with"
        f" its own sink; `drawdown checkpoint verify {name}` lists all faults, and `drawdown checkpoint"
        f" snapshot {name}` makes copies"
    )


def _can_rewind(generation: Generation, given: str) -> bool:
    """Whether a rewind that was cut off can be completed: what it reads may be damaged since.

    Args:
        given: its arguments, as the mark has them.
    """
    to = re.match(r"--to (\d+)", given)
    try:
        return to is not None and logs_to_cut(generation, int(to[1])) is not None
    except RefusedError:
        return False


def back_to_metastore(generation: Generation) -> str:
    """Return the remedy when a restored older metastore lacks batches of the checkpoint.

    The sink may also have them: it goes back with the checkpoint, and the next run writes the rows again.
    """
    name, metastore = generation.pipeline.name, generation.metastore
    known = max((each.batch_id for each in metastore.batches(name, generation.number)), default=-1)
    of_this = [s for s in snapshots(generation.storage, name) if s.generation == generation.number]
    newest = of_this[-1] if of_this else None
    newer_copy = "restore a newer copy of the metastore, if there is one; otherwise "
    kept = [batch for batch in kept_batches(generation) if batch <= known]
    batch = _batch_to_go_back_to(generation, kept)
    if newest is not None and (batch is None or newest.last_batch >= batch):
        flag = _sink_flag(generation, newest.last_batch)
        return (
            f"{newer_copy}`drawdown checkpoint restore {name} {newest.name}{flag}` restores the newest"
            " snapshot, with the metastore's records of that time"
        )
    if batch is not None:
        return (
            f"{newer_copy}`drawdown checkpoint rewind {name} --to {batch} --sink` goes back to the"
            " metastore's last batch, including the sink, and the next run writes the later rows again"
        )
    return (
        f"{newer_copy}read everything again into a new pipeline folder with its own sink: the sink cannot"
        " go back to the metastore's last batch"
    )


def rewind_to(generation: Generation, last: int) -> str:
    """Return the rewind that takes in again what came after a batch, and ``; or``; ``""`` if none can."""
    name = generation.pipeline.name
    kept = [batch for batch in kept_batches(generation) if batch <= last]
    batch = _batch_to_go_back_to(generation, kept)
    if batch is None:
        return ""
    return (
        f"`drawdown checkpoint rewind {name} --to {batch} --sink` goes back to batch {batch}, and the next"
        " run writes the later rows again; or "
    )


def _batch_to_go_back_to(generation: Generation, kept: Sequence[int]) -> int | None:
    """Return the last of these batches that the sink can go back to."""
    try:
        return next((batch for batch in reversed(kept) if nearest_stop(generation, batch) == batch), None)
    except DrawdownError:  # the sink is unreachable
        return None


def _fixable(generation: Generation, faults: Sequence[CheckpointFault]) -> bool:
    try:
        fixes = Fixes(generation)
        return all(fixes.of(fault) is not None for fault in faults)
    except DrawdownError:  # another required file is also damaged, or the sink is unreachable
        return False


def _sink_flag(generation: Generation, last: int) -> str:
    """`` --sink`` when the sink is ahead and can be taken back."""
    try:
        ahead = max(shown_batches(generation).values()) > last
    except DrawdownError:
        return ""
    return " --sink" if ahead and can_go_back(generation) else ""
