"""Take a sink back to the last rows of an earlier batch, so that a checkpoint can go back with it."""

from __future__ import annotations

import uuid

from drawdown.checkpoint import FileLog, delete_with_checksum
from drawdown.errors import RefusedError
from drawdown.metastore.records import Change, Lease, StagedTable
from drawdown.publishing.delta_history import DeltaHistory
from drawdown.publishing.target import transaction_id
from drawdown.publishing.targets import output_uri, quarantine_uri
from drawdown.recovery.ahead import can_go_back, refuse_ahead
from drawdown.recovery.generation import Generation


def take_sink_back(generation: Generation, last: int, lease: Lease) -> None:
    """Make the output and the quarantine hold what they held after batch `last`.

    Delta: one commit that restores the table's version of then, under the transaction id's version of
    then. File sinks: newer entries leave the sink's log; the files stay and are not read.

    Raises:
        RefusedError: ``sink.ahead`` for a sink that cannot go back; ``sink.between``: batches before and
            behind `last` came in one commit, or in one compacted entry; ``lease.lost``.
        SourceError: the sink cannot be reached, or the files of that version are vacuumed.
    """
    refuse_stuck(generation, last)
    metastore, name = generation.metastore, generation.pipeline.name
    for table in _ahead(generation, last):
        if table == "output" and generation.sink_log is not None:
            metastore.check_lease(lease)
            _cut_log(generation, generation.sink_log, last)
            continue
        app_id = transaction_id(name, generation.number, table)
        history = _history(generation, table)
        version, held = history.version_with(app_id, last)
        change = Change(
            uuid.uuid4().hex, name, table, generation.number, "restore", lease.run_id,
            scope={"version": version, "batch": last}, based_on=history.newest,
        )  # fmt: skip
        change = metastore.begin_change(lease, change)
        history.restore(version, change, {app_id: held})
        metastore.end_changes([change.change_id], "committed")


def refuse_stuck(generation: Generation, last: int) -> None:
    """Refuse what `take_sink_back` cannot do, before anything is touched. Raises as it does."""
    if "output" in _ahead(generation, last) and not can_go_back(generation):
        refuse_ahead(generation, last, f"drawdown checkpoint show {generation.pipeline.name}")
    stop = nearest_stop(generation, last)
    if stop != last:
        raise _between(generation, last, stop)


def nearest_stop(generation: Generation, last: int) -> int:
    """The batch nearest to `last`, at or before it, that the sink can be taken back to; -1 when to none.

    Raises:
        SourceError: the sink cannot be reached.
    """
    return min((_stop(generation, table, last) for table in _ahead(generation, last)), default=last)


def _ahead(generation: Generation, last: int) -> list[StagedTable]:
    return [table for table, batch in generation.shown().items() if batch > last]


def _stop(generation: Generation, table: StagedTable, last: int) -> int:
    if table == "output" and generation.sink_log is not None:
        # A compacted entry has the files of all batches before it, too.
        return last if FileLog(generation.storage, generation.sink_log, {}).compacted() <= last else -1
    if table == "output" and not can_go_back(generation):
        return -1
    of, metastore = (generation.pipeline.name, generation.number), generation.metastore
    _, held = _history(generation, table).version_with(transaction_id(*of, table), last)
    if held < 0 and generation.checkpoint is not None and "before" in generation.checkpoint.rebuild:
        # The versions before the swap have the rows of another generation.
        return held
    published = [b.batch_id for b in metastore.batches(*of, statuses=("published",), first_batch=held + 1)]
    between = metastore.staged_files(*of, [batch for batch in published if batch <= last], table=table)
    return held if between else last


def _history(generation: Generation, table: StagedTable) -> DeltaHistory:
    uri = {"output": output_uri, "quarantine": quarantine_uri}[table]
    return DeltaHistory(uri(generation.project, generation.pipeline))


def _cut_log(generation: Generation, folder: str, last: int) -> None:
    names = FileLog(generation.storage, folder, {}).names()
    for name in [name for name, entry in reversed(names.items()) if entry > last]:
        delete_with_checksum(generation.storage, f"{folder}/{name}")


def _between(generation: Generation, last: int, stop: int) -> RefusedError:
    name = generation.pipeline.name
    return RefusedError(
        "sink.between",
        f"the sink of {name} cannot go back to batch {last} alone: it was written together with later ones",
        where=f"pipeline {name}, generation {generation.number}",
        do=f"go back further: `drawdown checkpoint rewind {name} --to {stop} --sink`"
        if stop >= 0
        else "let the sink be, and read everything anew into a new pipeline folder with a sink of its own",
    )
