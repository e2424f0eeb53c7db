"""Detects a sink or quarantine that was put back from an older copy: it lacks published batches."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.checkpoint import SINK_FIELDS, FileLog
from drawdown.errors import RefusedError
from drawdown.metastore.records import Lease, StagedTable
from drawdown.recovery.repair.advice import rewind_to
from drawdown.recovery.repair.faults import shown_batches, shown_in, sink_log
from drawdown.workspace import Generation

_NAMES: dict[StagedTable, str] = {"output": "sink", "quarantine": "quarantine"}


def refuse_older_sink(generation: Generation) -> None:
    """Refuse if the last published batch is not in its table; changes nothing.

    Asked before anything is published: a later batch in the sink would hide the gap. A sink that was only
    handed its rows cannot be asked.

    Raises:
        RefusedError: ``sink.older-copy``. SourceError: the sink cannot be reached.
    """
    older = list(_older(generation))
    if not older:
        return
    name, shown = generation.pipeline.name, _shown(generation, older)
    last_in_all = min(_first_missing(generation, table, shown[table]) for table, _ in older) - 1
    said = "; ".join(
        f"the {_NAMES[table]} of {name} has batches up to {shown[table]}, but batch {last} was published"
        for table, last in older
    )
    raise RefusedError(
        "sink.older-copy",
        f"{said}: it was put back from an older copy, and the rows in between are missing",
        where=f"pipeline {name}, generation {generation.number}",
        do=f"put the newer copy back; or {rewind_to(generation, last_in_all)}"
        f"`drawdown checkpoint accept {name} --why ...` goes on without these rows",
    )


def go_on_without(generation: Generation, lease: Lease) -> list[str]:
    """Accept what `refuse_older_sink` refuses; returns a sentence for each table."""
    older = list(_older(generation))
    shown = _shown(generation, older)
    said = []
    for table, last in older:
        generation.metastore.forget_files(lease, generation.number, table, shown[table])
        said.append(f"the {_NAMES[table]} goes on without what batches {shown[table] + 1} to {last} brought")
    return said


def _shown(generation: Generation, older: list[tuple[StagedTable, int]]) -> dict[StagedTable, int]:
    """Return the last batch that each table shows, before the one that it lacks.

    The log of a file sink that has lost an entry in its middle also names later batches.
    """
    shown = shown_batches(generation)
    return {table: min(shown[table], last - 1) for table, last in older}


def _first_missing(generation: Generation, table: StagedTable, shown: int) -> int:
    """Return the first published batch with files for a table that the table lacks."""
    later = generation.batches(("published",), first_batch=shown + 1)
    return min(batch for batch, _ in generation.staged_files((b.batch_id for b in later), table))


def _older(generation: Generation) -> Iterator[tuple[StagedTable, int]]:
    if generation.checkpoint is None:
        return
    wanted = generation.metastore.last_shown(generation.pipeline.name, generation.number)
    for table, last in sorted(wanted.items()):
        if not _holds(generation, table, last):
            yield table, last


def _holds(generation: Generation, table: StagedTable, batch_id: int) -> bool:
    log = sink_log(generation) if table == "output" else None
    if log is not None:
        return FileLog(generation.storage, log, SINK_FIELDS).holds(batch_id)
    return batch_id <= shown_in(generation, table, at_least=batch_id)
