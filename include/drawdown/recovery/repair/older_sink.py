"""Detects a sink or quarantine that was put back from an older copy: it lacks published batches."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.errors import RefusedError
from drawdown.metastore.records import Lease, StagedTable
from drawdown.recovery.repair.advice import rewind_to
from drawdown.recovery.repair.faults import shown_batches
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.spark_delivering import DeliveringSink
from drawdown.sinks.stage import SinkStage
from drawdown.workspace import Generation

_NAMES: dict[StagedTable, str] = {"output": "sink", "quarantine": "quarantine"}


def refuse_older_sink(generation: Generation, sink: SinkStage, quarantine: DeltaSink) -> None:
    """Refuse if the last published batch is not in its table; changes nothing.

    A sink that was only handed its rows cannot be asked.

    Raises:
        RefusedError: ``sink.older-copy``. SourceError: the sink cannot be reached.
    """
    older = list(_older(generation, sink, quarantine))
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


def go_on_without(generation: Generation, sink: SinkStage, quarantine: DeltaSink, lease: Lease) -> list[str]:
    """Accept what `refuse_older_sink` refuses; returns a sentence for each table."""
    older = list(_older(generation, sink, quarantine))
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


def _older(
    generation: Generation, sink: SinkStage, quarantine: DeltaSink
) -> Iterator[tuple[StagedTable, int]]:
    if generation.checkpoint is None:
        return
    wanted = generation.metastore.last_shown(generation.pipeline.name, generation.number)
    stages: dict[StagedTable, SinkStage] = {"output": sink, "quarantine": quarantine}
    for table, last in sorted(wanted.items()):
        stage = stages[table]
        if not isinstance(stage, DeliveringSink) and not stage.holds(generation.number, last):
            yield table, last
