"""Finds and removes quarantined rows that are older than `retention:` and that no recovery needs again.

A replay can be undone as long as a checkpoint or snapshot reaches back before it: until then its rows stay.
Rows of unpublished batches and of active replays stay, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from drawdown.delta.table import DeltaTableFiles
from drawdown.fault_points import durable
from drawdown.metastore.records import UNPUBLISHED, Change, QuarantineDecision
from drawdown.quarantine import other_bytes
from drawdown.quarantine.row_states import SetAside, folder_of, set_aside
from drawdown.upkeep.record_retention import retention_of
from drawdown.workspace import Generation, Workspace


@dataclass(frozen=True)
class Expired:
    """Which rows can be removed, and which must stay for now.

    Attributes:
        keys: keys of the rows to remove.
        rows: how many rows are removed, by state.
        replays: folders with the rows that a replay fed, relative to the storage root.
        stay: how many expired rows stay, by reason.
    """

    keys: frozenset[str] = frozenset()
    rows: Counter[str] = field(default_factory=Counter)
    replays: tuple[str, ...] = ()
    stay: Counter[str] = field(default_factory=Counter)


def expired(generation: Generation, now: datetime) -> Expired:
    """Find expired rows; the caller holds the pipeline's lease until they are removed.

    Raises:
        SourceError: the quarantine or the storage cannot be read.
    """
    limits, pipeline = generation.pipeline.retained, generation.pipeline
    decided, undecided = limits.quarantine, limits.quarantine_open
    metastore = generation.metastore
    decisions = {each.decision_id: each for each in metastore.decisions(pipeline.name)}
    settled = _settled(generation, decisions.values())
    waiting = {
        (each.generation, batch.batch_id)
        for each in metastore.generations(pipeline.name)
        for batch in metastore.batches(pipeline.name, each.generation, UNPUBLISHED)
    }
    batches_waiting = {batch for _, batch in waiting}
    keys, rows, stay = set(), Counter[str](), Counter[str]()
    for row in set_aside(Workspace(generation.project, metastore), pipeline):
        limit = undecided if row.state == "open" else decided
        decision = decisions.get(row.decision_id or "")
        if limit is None:
            if row.state == "open" and decided is not None and _is_older(row, decision, now, decided.delta):
                stay["they are undecided"] += 1
        elif not _is_older(row, decision, now, limit.delta):
            continue
        elif row.state == "replaying" or (
            row.batch_id in batches_waiting
            if row.generation is None
            else (row.generation, row.batch_id) in waiting
        ):
            stay["their batch is not published"] += 1
        elif row.state == "replayed" and row.decision_id not in settled:
            stay["the checkpoint, or a snapshot, can go back before their replay"] += 1
        else:
            keys.add(row.key)
            rows[row.state] += 1
    old = () if decided is None else _old_feeds(generation, decisions.values(), settled, now - decided.delta)
    return Expired(frozenset(keys), rows, tuple(old), stay)


def remove_expired(
    generation: Generation, table: DeltaTableFiles, found: Expired, begin: Callable[[int], Change]
) -> None:
    """Remove the expired rows in one commit, and their replay folders.

    Args:
        begin: begins the change in the register, given the table's version.

    Raises:
        SourceError: ``sink.unreadable``, ``sink.unwritable``; the same call may be made again.
    """
    with durable("upkeep.expire"):
        if found.keys:
            other_bytes.without(generation.storage, table, found.keys, begin)
        for folder in found.replays:
            generation.storage.delete(folder)


def _is_older(row: SetAside, decision: QuarantineDecision | None, now: datetime, age: timedelta) -> bool:
    """Whether a row is too old. Rows from an older Drawdown have no time; the time of their decision is
    used."""
    since = row.set_aside_at or (decision.decided_at if decision else None)
    return since is not None and since < now - age


def _settled(generation: Generation, decisions: Iterable[QuarantineDecision]) -> set[str]:
    """Return the decisions that no rewind or restore can undo."""
    records = retention_of(generation)
    return {
        each.decision_id
        for each in decisions
        if each.generation in records.gone or each.batch_id < records.first_kept.get(each.generation, -1)
    }


def _old_feeds(
    generation: Generation, decisions: Iterable[QuarantineDecision], settled: set[str], until: datetime
) -> Iterable[str]:
    for each in decisions:
        folder = f"{folder_of(generation.pipeline, each.decision_id)}/rows"
        is_old = each.kind == "replay" and each.decided_at is not None and each.decided_at < until
        if is_old and each.decision_id in settled and any(generation.storage.walk(folder)):
            yield folder
