"""Take a sink back to the last rows of an earlier batch, so that a checkpoint can go back with it."""

from __future__ import annotations

from drawdown.checkpoint import FileLog, delete_with_checksum
from drawdown.errors import RefusedError
from drawdown.metastore.records import Lease, StagedTable
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
    shown = generation.shown()
    if not can_go_back(generation) and shown["output"] > last:
        refuse_ahead(generation, last, f"drawdown checkpoint show {generation.pipeline.name}")
    with generation.metastore.fenced(lease):
        if shown["quarantine"] > last:
            _delta_back(generation, "quarantine", last)
        if shown["output"] > last:
            if generation.sink_log is not None:
                _files_back(generation, generation.sink_log, last)
            else:
                _delta_back(generation, "output", last)


def _delta_back(generation: Generation, table: StagedTable, last: int) -> None:
    uri = {"output": output_uri, "quarantine": quarantine_uri}[table](generation.project, generation.pipeline)
    history = DeltaHistory(uri)
    app_id = transaction_id(generation.pipeline.name, generation.number, table)
    version, held = history.version_with(app_id, last)
    noted = generation.metastore.staged_files(
        generation.pipeline.name, generation.number, range(held + 1, last + 1), table=table
    )
    published = {
        b.batch_id
        for b in generation.metastore.batches(
            generation.pipeline.name, generation.number, statuses=("published",)
        )
    }
    between = sorted({batch for batch, _ in noted if table == "quarantine" or batch in published})
    if between:
        raise _between(generation, last, held)
    history.restore(version, app_id, held)


def _files_back(generation: Generation, folder: str, last: int) -> None:
    log = FileLog(generation.storage, folder, {})
    if log.compacted() > last:
        raise _between(generation, last, log.compacted())
    for name, entry in reversed(log.names().items()):
        if entry > last:
            delete_with_checksum(generation.storage, f"{folder}/{name}")


def _between(generation: Generation, last: int, other: int) -> RefusedError:
    name = generation.pipeline.name
    return RefusedError(
        "sink.between",
        f"the sink of {name} cannot go back to batch {last} alone: it was written together with others",
        where=f"pipeline {name}, generation {generation.number}",
        do=f"go back to batch {other} instead: `drawdown checkpoint rewind {name} --to {other} --sink`",
    )
