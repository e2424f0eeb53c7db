"""DEDUP: duplicates within a run, over runs, and keys that come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pytest

from drawdown.metastore.records import Run
from tests.support.sandbox import Sandbox, multiset
from tests.support.verdicts import warnings

SPEC = """
sources:
  events: {format: json, path: landing/events, schema: event.ddlWATERMARK}
transform: transform.py
sink: {format: delta, path: tables/out, schema: event.ddl}
state: {partitions: 2, rocksdb.trackTotalNumberOfRows: true}
"""
MARKED = SPEC.replace("WATERMARK", ", watermark: {column: at, delay: 1 hour}")
BARE = SPEC.replace("WATERMARK", "")
TRANSFORM = """
    from pyspark.sql import functions as F

    def transform(sources):
        return sources["events"].{}
"""
BY_ID = "dropDuplicates(['id'])"
BY_ID_AND_TIME = "dropDuplicates(['id', 'at'])"
WITHIN = "dropDuplicatesWithinWatermark(['id'])"

Event = tuple[int, str]


def _pipeline(sandbox: Sandbox, spec: str, call: str) -> None:
    sandbox.pipeline("once", spec, event_ddl="id BIGINT, at TIMESTAMP", transform_py=TRANSFORM.format(call))
    (sandbox.storage / "landing" / "events").mkdir(parents=True, exist_ok=True)


def _run(sandbox: Sandbox, file: str, *events: Event) -> Run:
    """One file of (id, "day hour:minute") of January 2024, and a drain."""
    rows = [{"id": id, "at": f"2024-01-{at.replace(' ', 'T')}:00Z"} for id, at in events]
    sandbox.land_json(f"landing/events/{file}.json", rows)
    return sandbox.run("once")


def out(sandbox: Sandbox) -> list[tuple[int, str]]:
    return [(id, f"{at:%d %H:%M}") for id, at in sandbox.delta("tables/out")]


def _by_duckdb(sandbox: Sandbox, sql: str) -> list[tuple[Any, ...]]:
    """A query over all events that have landed."""
    files, columns = sandbox.storage / "landing/events/*.json", "{'id': 'BIGINT', 'at': 'TIMESTAMP'}"
    with duckdb.connect() as db:
        db.execute(f"CREATE VIEW events AS SELECT * FROM read_json('{files}', columns = {columns})")
        return db.sql(sql).fetchall()


def _removed(run: Run) -> int:
    """Duplicates that the operator dropped, as the run record has them."""
    return run.counts.duplicates


def _in_state(run: Run) -> int:
    """Keys in state after the run's last batch."""
    rows: Sequence[int] = [operator["rows"] for operator in run.progress[-1]["operators"]]
    return sum(rows)


@pytest.mark.full
@pytest.mark.conformance("DEDUP-01")
def test_without_a_watermark_a_key_comes_once_for_ever(sandbox: Sandbox) -> None:
    _pipeline(sandbox, BARE, BY_ID)
    warning = warnings(sandbox, "once")["dedup.unbounded-state"]
    assert "the deduplication by id keeps every key that ever came" in warning.what
    assert "give the source a `watermark:`" in warning.do

    first = _run(sandbox, "1", (1, "01 10:00"), (1, "01 10:00"), (2, "01 10:00"))
    later = _run(sandbox, "2", (1, "20 10:00"), (3, "20 10:00"))
    assert [row[0] for row in out(sandbox)] == [1, 2, 3]
    assert multiset((row[0],) for row in out(sandbox)) == multiset(
        _by_duckdb(sandbox, "SELECT DISTINCT id FROM events")
    )
    assert (_removed(first), _removed(later)) == (1, 1)
    assert _in_state(later) == 3


@pytest.mark.full
@pytest.mark.conformance("DEDUP-02")
def test_by_key_and_event_time_under_a_watermark(sandbox: Sandbox) -> None:
    _pipeline(sandbox, MARKED, BY_ID_AND_TIME)
    assert warnings(sandbox, "once") == {}
    _run(sandbox, "1", (1, "01 10:00"), (1, "01 10:00"), (1, "01 10:05"))
    _run(sandbox, "2", (1, "01 10:05"), (2, "01 10:10"))
    _run(sandbox, "3", (1, "02 10:00"), (1, "02 10:00"))
    distinct = _by_duckdb(sandbox, "SELECT DISTINCT id, strftime(events.at, '%d %H:%M') FROM events")
    assert multiset(out(sandbox)) == multiset(distinct)
    assert len(out(sandbox)) == 4


@pytest.mark.full
@pytest.mark.conformance("DEDUP-02")
def test_a_watermark_that_is_not_among_the_keys_frees_no_state(sandbox: Sandbox) -> None:
    _pipeline(sandbox, MARKED, BY_ID)
    warning = warnings(sandbox, "once")["dedup.unbounded-state"]
    assert "the watermarked at is not among the keys, so the watermark frees no state" in warning.what
    assert "add at to the keys" in warning.do
    _run(sandbox, "1", (1, "01 10:00"), (2, "01 10:00"))
    run = _run(sandbox, "2", (3, "05 10:00"))
    assert _in_state(run) == 3
    assert [row[0] for row in out(sandbox)] == [1, 2, 3]


@pytest.mark.full
@pytest.mark.conformance("DEDUP-03")
def test_within_the_watermark_times_may_differ(sandbox: Sandbox) -> None:
    _pipeline(sandbox, MARKED, WITHIN)
    first = _run(sandbox, "1", (1, "01 10:00"), (1, "01 10:20"), (2, "01 10:30"))
    later = _run(sandbox, "2", (2, "01 10:40"), (3, "01 10:50"), (1, "01 10:05"))
    assert [id for id, _ in out(sandbox)] == [1, 2, 3]
    assert (_removed(first), _removed(later)) == (1, 2)


@pytest.mark.full
@pytest.mark.conformance("DEDUP-04")
@pytest.mark.parametrize("call", [BY_ID_AND_TIME, WITHIN])
def test_duplicates_in_different_runs_come_out_once(sandbox: Sandbox, call: str) -> None:
    _pipeline(sandbox, MARKED, call)
    sent = [(1, "01 10:00"), (2, "01 10:10"), (3, "01 10:20")]
    _run(sandbox, "1", *sent[:2])
    again = _run(sandbox, "2", *sent[:2], *sent[2:])
    all_again = _run(sandbox, "3", *sent)
    assert out(sandbox) == sent
    assert (_removed(again), _removed(all_again)) == (2, 3)


@pytest.mark.full
@pytest.mark.conformance("DEDUP-05")
@pytest.mark.parametrize("call", [BY_ID_AND_TIME, WITHIN])
def test_keys_are_forgotten_when_the_delay_has_passed(sandbox: Sandbox, call: str) -> None:
    _pipeline(sandbox, MARKED, call)
    kept = []
    for day in range(1, 5):
        events = [(10 * day + n, f"{day:02} 1{n}:00") for n in range(4)]
        kept.append(_in_state(_run(sandbox, str(day), *events)))
    assert kept == kept[:1] * 4, "four days leave no more keys than one"
    assert kept[0] < 4
    ids = _by_duckdb(sandbox, "SELECT id FROM events")
    assert multiset((id,) for id, _ in out(sandbox)) == multiset(ids)


@pytest.mark.full
@pytest.mark.conformance("DEDUP-06")
def test_a_key_that_comes_back_is_dropped_and_counted(sandbox: Sandbox) -> None:
    """One event a day and a delay of an hour: the key of the day before is forgotten a batch too late."""
    _pipeline(sandbox, MARKED, WITHIN)
    warning = warnings(sandbox, "once")["dedup.returning-key"]
    assert "dropDuplicatesWithinWatermark(id) may also drop a key that comes back long after" in warning.what
    assert "put the event time (or its day) into the keys" in warning.do
    assert "transformWithState" in warning.do

    runs = [_run(sandbox, str(day), (1, f"{day:02} 10:00")) for day in range(1, 5)]
    assert out(sandbox) == [(1, "01 10:00"), (1, "03 10:00")], "every second day, as in plain Spark"
    assert [_removed(run) for run in runs] == [0, 1, 0, 1], "but no row is dropped uncounted"


@pytest.mark.full
@pytest.mark.conformance("DEDUP-06")
def test_the_day_among_the_keys_is_the_way_out(sandbox: Sandbox) -> None:
    """The date of `at`, and not a window of it, which would be a second watermarked column."""
    by_day = "withColumn('day', F.to_date('at')).dropDuplicatesWithinWatermark(['id', 'day']).drop('day')"
    _pipeline(sandbox, MARKED, by_day)
    first = _run(sandbox, "1", (1, "01 10:00"), (1, "01 10:30"))
    later = [_run(sandbox, str(day), (1, f"{day:02} 10:00")) for day in range(2, 5)]
    assert out(sandbox) == [(1, f"{day:02} 10:00") for day in range(1, 5)]
    assert (_removed(first), sum(_removed(run) for run in later)) == (1, 0)
