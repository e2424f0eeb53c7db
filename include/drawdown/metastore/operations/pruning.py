"""Prune, in one transaction, records that no command, replay, audit or recovery needs any more.

docs/upkeep.md lists what is kept at any age, and why. The first batch of a generation takes over the counts
and losses of removed batches, so that sums over a generation, and where its reading began, do not change.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Table, delete, exists, func, select, update

from drawdown.metastore import counts
from drawdown.metastore.clock import read_clock
from drawdown.metastore.operations.runs import read_uncounted
from drawdown.metastore.operations.verdicts import published_slices
from drawdown.metastore.records import UNPUBLISHED, Counts, Lease
from drawdown.metastore.store import Metastore
from drawdown.metastore.tables import (
    announcements,
    applications,
    batches,
    changes,
    leases,
    maxima,
    quarantine_decisions,
    read_files,
    runs,
    staged_files,
    verdicts,
)

NEWEST_RUNS = 100
"""How many runs, and verdicts, of each pipeline are kept at any age."""

STRIPPED = "older than `retention:`: what it said is removed"
"""Replaces the text of a verdict, of an error of a run, and of an alert."""

_OF_A_GENERATION = (batches, staged_files, read_files, maxima)
_Row = Row[*tuple[Any, ...]]
_IDS_PER_STATEMENT = 500  # both stores bound the parameters of one statement


@dataclass(frozen=True)
class Retention:
    """Which records of a pipeline are kept.

    Attributes:
        age: records that ended more recently than this, by the store's clock, are kept.
        first_kept: by generation, the first batch that something may return to; a generation without it
            keeps all.
        gone: generations whose checkpoint is gone: their batches are removed at any age.
        history: by measure, how many of its last values in published slices are kept for comparison.
        every_batch: batches and the files they wrote are kept at any age.
    """

    age: timedelta
    first_kept: Mapping[int, int]
    gone: Collection[int] = ()
    history: Mapping[str, int] = field(default_factory=dict)
    every_batch: bool = False


class _Undo(Exception):
    """Rolls back a transaction that was only made to count."""


def prune_records(
    metastore: Metastore, lease: Lease, retention: Retention, *, dry: bool = False
) -> dict[str, int]:
    """Remove what the retention does not keep; return the removed rows by table, without zeros.

    Args:
        dry: remove nothing, but return the same numbers.

    Raises:
        RefusedError: ``lease.lost``.
    """
    removed: Counter[str] = Counter()
    try:
        with metastore.fenced(lease) as conn:
            _prune(conn, lease.pipeline, retention, removed)
            if dry:
                raise _Undo
    except _Undo:
        pass
    return dict(+removed)


def strip_values(metastore: Metastore, lease: Lease, age: timedelta, *, dry: bool = False) -> dict[str, int]:
    """Remove values of rows from older verdicts, errors of runs, and alerts that last; return how many
    changed, by table.

    Outcomes, counts and measures stay, because later audits and pages need them. Verdicts of unpublished
    slices stay unchanged: people decide by them.

    Raises:
        RefusedError: ``lease.lost``.
    """
    stripped: Counter[str] = Counter()
    try:
        with metastore.fenced(lease) as conn:
            old = read_clock(conn) - age
            stripped["verdicts"] = _strip_verdicts(conn, lease.pipeline, old)
            stripped["runs"] = _strip_errors(conn, lease.pipeline, old)
            stripped["announcements"] = _strip_sentences(conn, lease.pipeline, old)
            if dry:
                raise _Undo
    except _Undo:
        pass
    return dict(+stripped)


def _strip_verdicts(conn: Connection, pipeline: str, old: datetime) -> int:
    waits = exists().where(
        batches.c.pipeline == verdicts.c.pipeline,
        batches.c.generation == verdicts.c.generation,
        batches.c.batch_id.between(verdicts.c.first_batch, verdicts.c.last_batch),
        batches.c.status.in_(UNPUBLISHED),
    )
    found = conn.execute(
        select(verdicts.c.verdict_id, verdicts.c.results).where(
            verdicts.c.pipeline == pipeline, verdicts.c.created_at < old, verdicts.c.text != STRIPPED, ~waits
        )
    ).all()
    for row in found:
        bare = [{**result, "observed": None, "samples": [], "exception": None} for result in row.results]
        of = verdicts.c.verdict_id == row.verdict_id
        conn.execute(update(verdicts).where(of).values(results=bare, text=STRIPPED))
    return len(found)


def _strip_errors(conn: Connection, pipeline: str, old: datetime) -> int:
    found = conn.execute(
        select(runs.c.run_id, runs.c.error).where(
            runs.c.pipeline == pipeline, runs.c.ended_at < old, runs.c.error.is_not(None)
        )
    ).all()
    described = [row for row in found if row.error and row.error.get("what") != STRIPPED]
    for row in described:
        bare = {**row.error, "what": STRIPPED}
        conn.execute(update(runs).where(runs.c.run_id == row.run_id).values(error=bare))
    return len(described)


def _strip_sentences(conn: Connection, pipeline: str, old: datetime) -> int:
    """What an alert says comes from the error that it is about."""
    of = (announcements.c.pipeline == pipeline) & (announcements.c.since < old)
    said = of & (announcements.c.sentence != STRIPPED)
    return conn.execute(update(announcements).where(said).values(sentence=STRIPPED)).rowcount


def _prune(conn: Connection, pipeline: str, retention: Retention, removed: Counter[str]) -> None:
    old = read_clock(conn) - retention.age
    history = published_slices(conn, pipeline, retention.history)
    for generation in retention.gone:
        decided = _decided(conn, pipeline, generation)
        for table in _OF_A_GENERATION:
            of = [table.c.pipeline == pipeline, table.c.generation == generation]
            if "batch_id" in table.c:
                of.append(table.c.batch_id.not_in(decided))
            removed[table.name] += conn.execute(delete(table).where(*of)).rowcount
    kept = dict.fromkeys(retention.gone, sys.maxsize)
    for generation, first in retention.first_kept.items():
        kept[generation] = _whole_slices(conn, pipeline, generation, first)
        spared = {row.last_batch for row in history if row.generation == generation}
        if not retention.every_batch:
            removed += _thin(conn, _Thinned(pipeline, generation, kept[generation], old, spared))
    removed["verdicts"] += _prune_verdicts(conn, pipeline, kept, old, [row.verdict_id for row in history])
    removed["runs"] += _prune_runs(conn, pipeline, kept, old)
    removed["applications"] += _prune_applications(conn, old)
    over = changes.c.pipeline == pipeline, changes.c.state != "open", changes.c.ended_at < old
    # The change of a decision shows whether the decision is valid.
    asked = select(quarantine_decisions.c.decision_id).where(quarantine_decisions.c.pipeline == pipeline)
    removed["changes"] += conn.execute(
        delete(changes).where(*over, changes.c.change_id.not_in(asked))
    ).rowcount
    # Each replayed interval has a lease; no process that it would fence sleeps that long.
    ended = leases.c.released, leases.c.renewed_at < old
    replays = leases.c.pipeline.startswith(f"{pipeline}#replay ", autoescape=True)
    removed["leases"] += conn.execute(delete(leases).where(replays, *ended)).rowcount


def _whole_slices(conn: Connection, pipeline: str, generation: int, first: int) -> int:
    """Return the first batch to keep, lowered so that no slice is cut and no unpublished batch is removed."""
    here = batches.c.pipeline == pipeline, batches.c.generation == generation
    waiting = select(func.min(batches.c.batch_id)).where(*here, batches.c.status.in_(UNPUBLISHED))
    oldest = conn.execute(waiting).scalar()
    first = first if oldest is None else min(first, oldest)
    around = select(func.min(verdicts.c.first_batch)).where(
        verdicts.c.pipeline == pipeline,
        verdicts.c.generation == generation,
        verdicts.c.first_batch <= first,
        verdicts.c.last_batch >= first,
    )
    begins = conn.execute(around).scalar()
    return first if begins is None else min(first, begins)


@dataclass(frozen=True)
class _Thinned:
    """The batches of a generation before `first`: those of runs that ended before `old` may go."""

    pipeline: str
    generation: int
    first: int
    old: datetime
    spared: Collection[int]


def _thin(conn: Connection, of: _Thinned) -> Counter[str]:
    """Remove these batches, except those that a replay needs; return the removed rows by table."""
    removed: Counter[str] = Counter()
    here = [batches.c.pipeline == of.pipeline, batches.c.generation == of.generation]
    of_run = runs.c.run_id == batches.c.run_id
    query = (
        select(batches.c.batch_id, batches.c.by_source, batches.c.offsets_to, runs.c.run_id, runs.c.ended_at)
        .outerjoin(runs, of_run)
        .where(*here, batches.c.batch_id < of.first)
        .order_by(batches.c.batch_id)
    )
    rows = conn.execute(query).all()
    stay = {*of.spared, *_decided(conn, of.pipeline, of.generation), *_around_other_partitions(rows)}
    stay |= {row.batch_id for row in rows[:1]}
    # A batch whose run was removed is older than the retention, too.
    ended = (
        row for row in rows if row.run_id is None or (row.ended_at is not None and row.ended_at < of.old)
    )
    gone = [row.batch_id for row in ended if row.batch_id not in stay]
    if not gone:
        return removed
    _take_up(conn, here, rows[0], [row for row in rows if row.batch_id in set(gone)])
    for table in (staged_files, batches):
        for ids in _parts(gone):
            named = table.c.pipeline == of.pipeline, table.c.generation == of.generation
            these = delete(table).where(*named, table.c.batch_id.in_(ids))
            removed[table.name] += conn.execute(these).rowcount
    return removed


def _around_other_partitions(rows: Sequence[_Row]) -> Iterator[int]:
    """Yield the batches around a recreated topic or new partitions: a replay needs them to find its start."""
    before: _Row | None = None
    for row in rows:
        if before is not None and (_topics(row), _partitions(row)) != (_topics(before), _partitions(before)):
            yield from (before.batch_id, row.batch_id)
        before = row


def _topics(row: _Row) -> dict[str, Any]:
    return {source: noted.get("topic_ids") for source, noted in row.by_source.items()}


def _partitions(row: _Row) -> list[set[tuple[str, str]]]:
    """Return each source's partitions; a Kafka source's offset is {topic: {partition: next offset}}."""
    return [
        {
            (topic, number)
            for topic, numbers in (offset or {}).items()
            if isinstance(numbers, dict)
            for number in numbers
        }
        if isinstance(offset, dict)
        else set()
        for offset in row.offsets_to
    ]


def _take_up(conn: Connection, here: list[Any], first: _Row, gone: Sequence[_Row]) -> None:
    columns = [batches.c[name] for name in counts.NAMES]
    total = Counts()
    for ids in _parts([first.batch_id, *(row.batch_id for row in gone)]):
        for found in conn.execute(select(*columns).where(*here, batches.c.batch_id.in_(ids))):
            total += Counts(*found)
    by_source = {source: dict(noted) for source, noted in first.by_source.items()}
    for row in gone:
        for source, noted in row.by_source.items():
            if noted.get("lost"):
                known = by_source.setdefault(source, {})
                known["lost"] = [*known.get("lost", ()), *noted["lost"]]
    values = counts.to_columns({"counts": total, "by_source": by_source})
    conn.execute(update(batches).where(*here, batches.c.batch_id == first.batch_id).values(values))


def _decided(conn: Connection, pipeline: str, generation: int) -> list[int]:
    """Return the batches that took rows of the quarantine: they show whether those were replayed."""
    c = quarantine_decisions.c
    query = select(c.batch_id).where(c.pipeline == pipeline, c.generation == generation, c.kind == "replay")
    return list(conn.execute(query).scalars())


def _prune_verdicts(
    conn: Connection, pipeline: str, kept: Mapping[int, int], old: datetime, history: Sequence[int]
) -> int:
    of = verdicts.c.pipeline == pipeline
    newest = select(verdicts.c.verdict_id).where(of).order_by(verdicts.c.verdict_id.desc()).limit(NEWEST_RUNS)
    found = conn.execute(
        select(verdicts.c.verdict_id, verdicts.c.generation, verdicts.c.last_batch).where(
            of, verdicts.c.created_at < old, verdicts.c.verdict_id.not_in(newest)
        )
    )
    spared = set(history)
    gone = [
        row.verdict_id
        for row in found
        if row.verdict_id not in spared and row.last_batch < kept.get(row.generation, 0)
    ]
    return _delete(conn, verdicts, "verdict_id", gone)


def _prune_runs(conn: Connection, pipeline: str, kept: Mapping[int, int], old: datetime) -> int:
    of = runs.c.pipeline == pipeline
    newest_first = select(runs.c.run_id).where(of).order_by(runs.c.started_at.desc())
    stay = set(conn.execute(newest_first.limit(NEWEST_RUNS)).scalars())
    # Freshness is computed from the last run that published.
    stay |= set(conn.execute(newest_first.where(runs.c.published > 0).limit(1)).scalars())
    # An uncounted watch explains batches without a record.
    watches = (read_uncounted(conn, pipeline, generation) for generation in kept)
    stay |= {watch.run_id for watch in watches if watch is not None}
    for table, column in ((verdicts, "run_id"), (quarantine_decisions, "decision_id")):
        stay |= set(conn.execute(select(table.c[column]).where(table.c.pipeline == pipeline)).scalars())
    c = batches.c
    made = conn.execute(select(c.run_id, c.generation, c.batch_id).where(c.pipeline == pipeline))
    stay |= {row.run_id for row in made if row.batch_id >= kept.get(row.generation, 0)}
    ended = select(runs.c.run_id).where(of, runs.c.state != "running", runs.c.ended_at < old)
    return _delete(conn, runs, "run_id", [id for id in conn.execute(ended).scalars() if id not in stay])


def _prune_applications(conn: Connection, old: datetime) -> int:
    """Remove applications, of all pipelines, that no kept run belongs to: runs need them for their cost."""
    c = applications.c
    named = select(runs.c.application).where(runs.c.application.is_not(None))
    gone = delete(applications).where(c.seen_at < old, c.application_id.not_in(named))
    return conn.execute(gone).rowcount


def _delete(conn: Connection, table: Table, column: str, values: Sequence[Any]) -> int:
    done = (conn.execute(delete(table).where(table.c[column].in_(part))) for part in _parts(values))
    return sum(each.rowcount for each in done)


def _parts(values: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), _IDS_PER_STATEMENT):
        yield list(values[start : start + _IDS_PER_STATEMENT])
