"""What is wrong with a checkpoint as an error that names the command which fixes it."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.checkpoint import MARKS, CheckpointFault
from drawdown.errors import DrawdownError, RefusedError
from drawdown.recovery.faults import all_faults, restart_faults, shown_batches
from drawdown.recovery.fixes import Fixes
from drawdown.recovery.rewind import kept_batches
from drawdown.recovery.sink.ahead import can_go_back
from drawdown.recovery.sink.back import nearest_stop
from drawdown.recovery.snapshots import snapshots
from drawdown.workspace import Generation


def refuse_torn(generation: Generation) -> None:
    """Refuse a checkpoint that the next run could not go on from, as far as a quick look tells.

    Raises:
        RefusedError: ``checkpoint.torn``, naming file, cause and the command.
    """
    faults = restart_faults(generation)
    if faults:
        raise torn_error(generation, faults)


def torn_state(generation: Generation) -> RefusedError | None:
    """The error of a run that Spark ended, when what it had to read turns out not to be whole."""
    faults = [fault for fault in all_faults(generation) if fault.needed]
    return torn_error(generation, faults) if faults else None


def torn_error(generation: Generation, faults: Sequence[CheckpointFault]) -> RefusedError:
    """``checkpoint.torn`` for faults of files that the next run needs; the first is described in full."""
    first, *others = faults
    more = f"; and {len(others)} more" if others else ""
    return RefusedError(
        "checkpoint.metadata-missing" if _only_metadata(faults) else "checkpoint.torn",
        f"{first.part} of the checkpoint of {generation.pipeline.name}: {first.what}{more}",
        where=generation.storage.path(first.path),
        do=way_out(generation, faults),
    )


def way_out(generation: Generation, faults: Sequence[CheckpointFault]) -> str:
    """The command that fixes all of these; a sentence when there is none."""
    name = generation.pipeline.name
    if _fixable(generation, faults):
        return (
            f"`drawdown checkpoint repair {name}` fixes it without loss, and keeps a copy of what was there"
        )
    state = [fault.path for fault in faults if fault.part == "state"]
    return copy_back(generation, state if len(state) == len(faults) else ())


def copy_back(generation: Generation, state: Sequence[str] = ()) -> str:
    """The command that brings files back which only a copy has.

    Args:
        state: the files, when all of them are of the state: an earlier batch may do without them.
    """
    name, storage = generation.pipeline.name, generation.storage
    for mark, command in MARKS.items():
        if storage.exists(f"{generation.path}/{mark}"):
            given = storage.read_bytes(f"{generation.path}/{mark}").decode().splitlines()[0]
            return f"`drawdown checkpoint {command} {name} {given}` completes it"
    of_this = [s for s in snapshots(storage, name) if s.generation == generation.number]
    if of_this:
        newest = of_this[-1]
        flag = _sink_flag(generation, newest.last_batch)
        return f"`drawdown checkpoint restore {name} {newest.name}{flag}` puts the newest snapshot back"
    whole = _batch_to_go_back_to(generation, kept_batches(generation, frozenset(state))) if state else None
    if whole is not None:
        return (
            f"`drawdown checkpoint rewind {name} --to {whole} --sink` goes back to the last batch whose state"
            " is whole, sink and all, and the next run replays what came behind it; there is no snapshot"
        )
    return (
        "bring the files back from a copy of your own, or read everything again into a new pipeline folder"
        f" with a sink of its own; `drawdown checkpoint verify {name}` lists all that is wrong, and `drawdown"
        f" checkpoint snapshot {name}` makes copies"
    )


def back_to_metastore(generation: Generation) -> str:
    """The ways out when the checkpoint has batches that an older copy of the metastore does not know.

    The sink may have them, too: it goes back with the checkpoint, and the next run brings the rows again.
    """
    name, metastore = generation.pipeline.name, generation.metastore
    known = max((each.batch_id for each in metastore.batches(name, generation.number)), default=-1)
    of_this = [s for s in snapshots(generation.storage, name) if s.generation == generation.number]
    newest = of_this[-1] if of_this else None
    newer_copy = "put a newer copy of the metastore back, if there is one; otherwise "
    kept = [batch for batch in kept_batches(generation) if batch <= known]
    batch = _batch_to_go_back_to(generation, kept)
    if newest is not None and (batch is None or newest.last_batch >= batch):
        flag = _sink_flag(generation, newest.last_batch)
        return (
            f"{newer_copy}`drawdown checkpoint restore {name} {newest.name}{flag}` puts the newest snapshot"
            " back, with what the metastore knew by then"
        )
    if batch is not None:
        return (
            f"{newer_copy}`drawdown checkpoint rewind {name} --to {batch} --sink` goes back to what the"
            " metastore knows, sink and all, and the next run brings the rows behind it again"
        )
    return (
        f"{newer_copy}read everything again into a new pipeline folder with a sink of its own: the sink"
        " cannot go back to what the metastore knows"
    )


def _batch_to_go_back_to(generation: Generation, kept: Sequence[int]) -> int | None:
    """The last of these batches that the sink can go back to."""
    try:
        return next((batch for batch in reversed(kept) if nearest_stop(generation, batch) == batch), None)
    except DrawdownError:  # the sink is away
        return None


def _only_metadata(faults: Sequence[CheckpointFault]) -> bool:
    return all(fault.part == "metadata" and fault.kind == "missing" for fault in faults)


def _fixable(generation: Generation, faults: Sequence[CheckpointFault]) -> bool:
    try:
        fixes = Fixes(generation)
        return all(fixes.of(fault) is not None for fault in faults)
    except DrawdownError:  # another file it would read is torn as well, or the sink is away
        return False


def _sink_flag(generation: Generation, last: int) -> str:
    """`` --sink`` when the sink is ahead and can be taken back."""
    try:
        ahead = max(shown_batches(generation).values()) > last
    except DrawdownError:
        return ""
    return " --sink" if ahead and can_go_back(generation) else ""
