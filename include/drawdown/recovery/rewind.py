"""Rewind: takes a checkpoint back to an earlier batch; the next run replays the later ones.

1  refuse if the sink is ahead and not all of its tables can or may go back, or if files for that batch are no
   longer kept or damaged
2  mark the checkpoint: no run starts until the mark is removed (verify.py)
3  take the sink back, when that was asked for
4  delete the later batches from the metastore, with their staged files
5  remove commits and offsets, newest first; then logs of files are cut and newer state is removed
6  take the mark away
Cut off anywhere behind 2, the same command again completes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drawdown.checkpoint import REWINDING, FileLog, StateFiles, delete_with_checksum, log_offset
from drawdown.checkpoint.file_log import SOURCE_FIELDS
from drawdown.errors import RefusedError
from drawdown.fault_points import durable
from drawdown.metastore.records import UNPUBLISHED, Lease, StagedTable
from drawdown.recovery.mark import mark, unmark
from drawdown.recovery.repair.faults import keeps_keyed_state, keeps_state, sink_log
from drawdown.recovery.sink.ahead import refuse_ahead
from drawdown.recovery.sink.reset import (
    TakenBack,
    last_shown,
    refuse_behind,
    refuse_readers,
    refuse_stuck,
    take_sink_back,
)
from drawdown.sinks.unnamed_files import remove_unnamed
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Rewound:
    """The result of a rewind: the undone batches, ascending, and what was undone with them."""

    batches: list[int]
    sink: TakenBack


def rewind(
    generation: Generation, to: int, current: Callable[[], Lease], *, sink: bool, yes: bool = False
) -> Rewound:
    """Make batch `to` the last committed one.

    Args:
        sink: also reset the sink.
        yes: continue even if streams over its table will read rows a second time.

    Raises:
        RefusedError: ``checkpoint.not-kept``: files that `to` needs are gone; ``sink.ahead``,
            ``sink.behind``, ``sink.readers``, as `refuse_stuck`, and as `logs_to_cut` for damaged files.
            Nothing is touched then.
        SourceError: the storage or the sink cannot be reached.
    """
    _refuse_unkept(generation, to)
    cuts = logs_to_cut(generation, to)
    command = f"drawdown checkpoint rewind {generation.pipeline.name} --to {to}"
    if not sink:
        refuse_ahead(generation, to, command)
    else:
        refuse_stuck(generation, to)
        if not yes:
            refuse_readers(generation, to, f"{command} --sink")
    refuse_behind(generation, _shown_by(generation, to), f"batch {to} of the checkpoint")
    mark(generation, REWINDING, f"--to {to}{' --sink' * sink}{' --yes' * yes}")
    taken = take_sink_back(generation, to, current()) if sink else TakenBack()
    forget_batches(generation, to, current())
    files, storage, path = generation.files, generation.storage, generation.path
    later = sorted({n for n in (*files.offset_batches(), *files.commit_batches()) if n > to})
    for batch in reversed(later):
        current()
        delete_with_checksum(storage, f"{path}/commits/{batch}")
        delete_with_checksum(storage, f"{path}/offsets/{batch}")
    for log, last in cuts:
        log.cut(last)
    for store in StateFiles.read(storage, path).stores.values():
        for version, info in list(store.files()):
            if version > to + 1:
                delete_with_checksum(storage, info.relative)
    unmark(generation)
    return Rewound(later, taken)


def logs_to_cut(generation: Generation, to: int) -> list[tuple[FileLog, int]]:
    """Return the logs of files of the sources, each with its last entry after batch `to`.

    They are read before anything is changed: a rewind that ends at a damaged one could not be completed.

    Raises:
        RefusedError: ``checkpoint.torn``, ``checkpoint.missing-entry`` and others: a file is damaged.
    """
    offset = generation.files.offsets(to).by_source
    ends = {source: log_offset(offset.get(source)) for source in generation.files.sources()}
    logs = [
        (FileLog(generation.storage, f"{generation.path}/sources/{source}", SOURCE_FIELDS), last)
        for source, last in ends.items()
        if last is not None
    ]
    for log, _ in logs:
        log.everything()
    return logs


def _shown_by(generation: Generation, last: int) -> dict[StagedTable, int]:
    ids = [batch.batch_id for batch in generation.batches(("published",)) if batch.batch_id <= last]
    return last_shown(ids, [(batch, file.table) for batch, file in generation.staged_files(ids)])


def forget_batches(generation: Generation, last: int, lease: Lease) -> None:
    """Delete the batches after `last` from the metastore, and their staged files that were never visible.

    Files that a table version names stay until upkeep removes that version, because its readers see them: a
    held slice's quarantined rows were already published, for example.
    """
    later = generation.batches(UNPUBLISHED, first_batch=last + 1)
    files = generation.staged_files(batch.batch_id for batch in later)
    with durable("recovery.forget"):
        generation.metastore.forget_batches(lease, generation.number, last)
    if sink_log(generation) is None:
        remove_unnamed(generation, (file for _, file in files))


def kept_batches(generation: Generation, without: frozenset[str] = frozenset()) -> list[int]:
    """Return the committed batches that a rewind can reach: their logs and all their state are kept.

    Args:
        without: state files to treat as missing, by paths relative to the storage root.
    """
    files = generation.files
    try:
        state = StateFiles.read(generation.storage, generation.path, keyed=keeps_keyed_state(generation))
    except RefusedError:  # what its operators are cannot be read
        return []
    lost = without & {info.relative for info in state.metadata}
    if lost or (keeps_state(generation) and not state.stores):
        return []
    stores = state.stores.values()
    both = sorted(set(files.commit_batches()) & set(files.offset_batches()))
    return [batch for batch in both if not any(store.needed(batch + 1, without)[1] for store in stores)]


def _refuse_unkept(generation: Generation, to: int) -> None:
    name, kept = generation.pipeline.name, kept_batches(generation)
    if to not in kept:
        raise RefusedError(
            "checkpoint.not-kept",
            f"{name} cannot go back to batch {to}: "
            + (
                f"batches {kept[0]} to {kept[-1]} are kept"
                if kept
                else "no committed batch is completely kept"
            ),
            where=generation.storage.path(generation.path),
            do=f"choose one of those, or restore a snapshot: `drawdown checkpoint show {name}` lists both",
        )
    # With several watermarks each source's greatest event time decides, and only the current one is recorded.
    if len(generation.pipeline.watermarked_sources) > 1:
        raise RefusedError(
            "checkpoint.event-times",
            f"{name} has several watermarks, and its sources' event times as of batch {to} are not kept",
            where=str(generation.pipeline.folder / "pipeline.yaml"),
            do=f"restore a snapshot, which has them: `drawdown checkpoint show {name}` lists them",
        )
