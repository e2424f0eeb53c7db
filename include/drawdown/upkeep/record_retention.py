"""Which records of a pipeline are kept regardless of age, for a restart, a rewind or a roll back."""

from __future__ import annotations

from dataclasses import replace

from drawdown.checkpoint import CheckpointFiles
from drawdown.metastore.operations.pruning import Retention
from drawdown.metastore.records import Checkpoint
from drawdown.recovery.repair.faults import sink_log
from drawdown.recovery.snapshots import snapshots
from drawdown.spec.history import values_needed
from drawdown.workspace import Generation


def retention_of(generation: Generation) -> Retention:
    """Return the retention for the pipeline's current state.

    Raises:
        SourceError: the storage cannot be reached.
    """
    every = generation.metastore.generations(generation.pipeline.name)
    retired = [each for each in every if each.state == "retired"]
    return Retention(
        generation.project.upkeep.records.delta,
        _first_kept(generation, every),
        gone=[each.generation for each in retired if not _files(generation, each).exists],
        history=values_needed(generation.pipeline.quality.history),
        # Fixing a file sink's log needs the records of everything it has ever written.
        every_batch=sink_log(generation) is not None,
    )


def _first_kept(generation: Generation, every: list[Checkpoint]) -> dict[int, int]:
    """Return, by generation, the oldest batch that a checkpoint or snapshot can go back to."""
    name = generation.pipeline.name
    copies: dict[int, list[int]] = {}
    for snapshot in snapshots(generation.storage, name):
        copies.setdefault(snapshot.generation, []).append(snapshot.last_batch)
    found = {}
    for each in every:
        kept = [*_files(generation, each).offset_batches(), *copies.get(each.generation, ())]
        if kept and each.state in ("live", "retired"):
            found[each.generation] = min(kept)
    return found


def _files(generation: Generation, checkpoint: Checkpoint) -> CheckpointFiles:
    return replace(generation, checkpoint=checkpoint).files
