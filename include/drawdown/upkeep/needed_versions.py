"""Finds the oldest table version that is still needed; its files and those of later versions stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from drawdown.checkpoint import CheckpointFiles
from drawdown.delta.log import TableLog
from drawdown.metastore.records import StagedTable
from drawdown.plan.table_readers import Readers
from drawdown.recovery.request import time_of
from drawdown.recovery.snapshots import snapshot_names
from drawdown.workspace import Generation

# A snapshot's name comes from the clock of the machine that took it.
_CLOCKS_DIFFER = timedelta(hours=1)


@dataclass(frozen=True)
class Needed:
    """A version, who needs it, and the command that releases it; `do` is empty if only time does."""

    version: int
    by: str
    do: str = ""


def oldest_needed(
    generation: Generation, table: StagedTable, log: TableLog, readers: Readers, now: datetime
) -> Needed:
    """Return the oldest version that is still needed.

    Raises:
        SourceError: the storage or the table cannot be reached.
    """
    age = generation.project.upkeep.vacuum
    by_age = Needed(log.version_at(_millis(now - age.delta)), f"the last {age}")
    return min((by_age, *_others(generation, table, log, readers)), key=lambda each: each.version)


def _others(generation: Generation, table: StagedTable, log: TableLog, readers: Readers) -> Iterator[Needed]:
    name = generation.pipeline.name
    for reader, version in readers.needed.get(log.table_id, {}).items():
        yield Needed(version, f"{reader}, which has not read further", f"drawdown run {reader}")
    before = generation.checkpoint.rebuild.get("before") if generation.checkpoint else None
    if before is not None and _can_go_back(generation, before["generation"]):
        yield Needed(before[table], "a roll back", f"drawdown checkpoint prune {name} --previous")
    for snapshot in snapshot_names(generation.storage, name):
        version = log.version_at(_millis(time_of(snapshot) - _CLOCKS_DIFFER))
        yield Needed(version, f"snapshot {snapshot}", f"drawdown checkpoint prune {name} --keep 0")


def _can_go_back(generation: Generation, number: int) -> bool:
    there = generation.metastore.generations(generation.pipeline.name)
    old = next((each for each in there if each.generation == number), None)
    return old is not None and CheckpointFiles(generation.storage, old.path).exists


def _millis(at: datetime) -> int:
    return int(at.timestamp() * 1_000)
