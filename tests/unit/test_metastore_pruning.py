"""Old records go, and what a command, an audit, a restart or a replay asks for stays whatever its age."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.operations import pruning
from drawdown.metastore.operations.applications import Requested
from drawdown.metastore.operations.pruning import Retention, prune_records
from drawdown.metastore.records import (
    Batch,
    Change,
    Counts,
    FileMark,
    Lease,
    Outcome,
    QuarantineDecision,
    Run,
    StagedFile,
    Verdict,
)
from tests.support.ageing import records_grow_old

MINUTE, MONTH, YEAR = timedelta(minutes=1), timedelta(days=30), timedelta(days=365)
NAME = "flights"
FEW = 5


@pytest.fixture
def lease(metastore: Metastore) -> Lease:
    lease = metastore.acquire(NAME, "host pid 1", "upkeep", MINUTE)
    metastore.create_checkpoint(lease, 1, "_drawdown/flights/checkpoint-1", {})
    return lease


@pytest.fixture
def few_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs and verdicts so few stay by their number that a test needs not make hundreds."""
    monkeypatch.setattr(pruning, "NEWEST_RUNS", FEW)


def drained(
    store: Metastore,
    lease: Lease,
    batch_id: int,
    *,
    outcome: Outcome = "pass",
    by_source: dict[str, Any] | None = None,
    offsets_to: list[Any] | None = None,
    publish: bool = True,
    measures: dict[str, Any] | None = None,
) -> None:
    """One run of one batch of ten rows, judged and published."""
    run = f"run-{batch_id:04}"
    store.start_run(Run(run, NAME, generation=1))
    batch = Batch(NAME, 1, batch_id, run, 1, counts=Counts(read=10, fed=10, late=1))
    measures = {"volume": batch_id} if measures is None else measures
    offsets_to = offsets_to or [{"t": {"0": batch_id + 1}}]
    batch = replace(batch, offsets_to=offsets_to, by_source=by_source or {})
    store.note_batch(lease, batch, [StagedFile("output", f"part-{batch_id}", 1, 10)], {})
    store.mark_committed(lease, 1, batch_id)
    store.record_verdict(lease, Verdict(NAME, 1, run, batch_id, batch_id, outcome, measures=measures))
    if publish:
        store.mark_published(lease, 1, [batch_id])
    store.finish_run(run, "succeeded", counts=Counts(published=10))


def ids(store: Metastore) -> list[int]:
    return [batch.batch_id for batch in store.batches(NAME, 1)]


def pruned(store: Metastore, lease: Lease, first: int = 1_000, **retention: Any) -> dict[str, int]:
    return prune_records(store, lease, Retention(MONTH, {1: first}, **retention))


def test_what_is_old_goes_and_the_first_batch_takes_its_counts(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(6):
        drained(metastore, lease, batch_id)
        records_grow_old(metastore, timedelta(days=9))
    removed = pruned(metastore, lease)
    assert removed == {"batches": 2, "staged_files": 2}, "of 54 to 9 days; the newest runs stay"
    assert ids(metastore) == [0, 3, 4, 5]
    first = metastore.batch(NAME, 1, 0)
    assert first is not None
    assert first.counts == Counts(read=30, fed=30, late=3)
    assert [batch for batch, _ in metastore.staged_files(NAME, 1, range(6))] == [0, 3, 4, 5]
    assert pruned(metastore, lease) == {}


def test_a_dry_run_says_the_same_and_changes_nothing(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(4):
        drained(metastore, lease, batch_id)
    records_grow_old(metastore, YEAR)
    said = prune_records(metastore, lease, Retention(MONTH, {1: 1_000}), dry=True)
    assert ids(metastore) == [0, 1, 2, 3]
    assert said == pruned(metastore, lease) == {"batches": 3, "staged_files": 3}


def test_a_stale_holder_removes_nothing(metastore: Metastore, lease: Lease) -> None:
    drained(metastore, lease, 0)
    metastore.release(lease)
    with pytest.raises(RefusedError, match="no longer has the lease"):
        pruned(metastore, lease)


def test_what_can_be_gone_back_to_stays_with_its_whole_slice(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(6):
        drained(metastore, lease, batch_id)
    metastore.record_verdict(lease, Verdict(NAME, 1, "run-0004", 2, 4, "pass"))
    records_grow_old(metastore, YEAR)
    pruned(metastore, lease, first=4)
    assert ids(metastore) == [0, 2, 3, 4, 5], "batch 4 was published together with 2 and 3"
    pruned(metastore, lease, first=0)
    assert ids(metastore) == [0, 2, 3, 4, 5]


@pytest.mark.usefixtures("few_stay")
def test_a_held_slice_stays_with_its_verdict_and_its_run(metastore: Metastore, lease: Lease) -> None:
    drained(metastore, lease, 0)
    drained(metastore, lease, 1)
    drained(metastore, lease, 2, outcome="fail", publish=False)
    for batch_id in range(3, 3 + 2 * FEW):
        drained(metastore, lease, batch_id)
    records_grow_old(metastore, YEAR)
    pruned(metastore, lease)
    [held] = metastore.held_slices(NAME)
    assert held.batch_ids == [2]
    assert metastore.run(held.verdict.run_id) is not None
    assert [file.path for _, file in metastore.staged_files(NAME, 1, [2])] == ["part-2"]
    assert ids(metastore)[:3] == [0, 2, 3], "and what may wait behind it"


@pytest.mark.usefixtures("few_stay")
def test_what_slices_are_compared_with_stays(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(3 * FEW):
        drained(metastore, lease, batch_id)
    records_grow_old(metastore, YEAR)
    wanted = {"volume": 2 * FEW}
    before = metastore.slice_history(NAME, wanted)
    removed = pruned(metastore, lease, history=wanted)
    assert metastore.slice_history(NAME, wanted) == before
    assert removed["verdicts"] == FEW
    assert removed["runs"] == FEW


@pytest.mark.usefixtures("few_stay")
def test_the_newest_runs_and_the_last_that_published_stay(metastore: Metastore, lease: Lease) -> None:
    drained(metastore, lease, 0)
    drained(metastore, lease, 1)
    last = metastore.last_published(NAME)
    for number in range(2 * FEW):
        metastore.start_run(Run(f"idle-{number:04}", NAME))
        metastore.finish_run(f"idle-{number:04}", "succeeded")
    metastore.start_run(Run("other", "weather"))
    metastore.finish_run("other", "succeeded")
    records_grow_old(metastore, YEAR)
    assert last is not None
    assert pruned(metastore, lease)["runs"] == FEW
    assert metastore.last_published(NAME) == last - YEAR
    assert metastore.run("other") is not None, "of another pipeline"


def test_slices_without_a_value_take_no_place_of_those_with_one(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(12):
        with_rows = {"volume": batch_id, "mean(v)": None if batch_id % 2 else 1.0}
        measures = with_rows if batch_id < 6 else {}
        drained(metastore, lease, batch_id, outcome="warn", measures=measures)
    wanted = {"volume": 2, "mean(v)": 2}
    found = metastore.slice_history(NAME, wanted)
    assert [each["volume"] for each in found] == [5, 4, 2]
    assert metastore.slice_history(NAME, {}) == []
    records_grow_old(metastore, YEAR)
    pruned(metastore, lease, history=wanted)
    assert metastore.slice_history(NAME, wanted) == found


def test_where_a_topic_was_made_again_and_what_was_lost_is_still_known(
    metastore: Metastore, lease: Lease
) -> None:
    lost = {"topic": "t", "partition": 0, "first": 1, "after": 3, "offsets": 2}
    for batch_id in range(8):
        noted: dict[str, Any] = {"topic_ids": {"t": "old" if batch_id < 4 else "new"}}
        if batch_id == 2:
            noted["lost"] = [lost]
        drained(metastore, lease, batch_id, by_source={"events": noted})
    records_grow_old(metastore, YEAR)
    pruned(metastore, lease)
    assert ids(metastore) == [0, 3, 4]
    first = metastore.batch(NAME, 1, 0)
    assert first is not None
    assert first.by_source["events"] == {"topic_ids": {"t": "old"}, "lost": [lost]}


def test_where_partitions_were_added_is_still_known(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(8):
        partitions = {"0": batch_id} if batch_id < 4 else {"0": batch_id, "1": 5}
        drained(metastore, lease, batch_id, offsets_to=[{"logOffset": batch_id}, None, {"t": partitions}])
    records_grow_old(metastore, YEAR)
    pruned(metastore, lease)
    assert ids(metastore) == [0, 3, 4]


def test_batches_that_took_rows_of_the_quarantine_stay(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(4):
        drained(metastore, lease, batch_id)
    metastore.note_decision(lease, QuarantineDecision("d1", NAME, "replay", 1, 5, "keys", batch_id=2))
    records_grow_old(metastore, YEAR)
    pruned(metastore, lease)
    assert ids(metastore) == [0, 2]
    assert metastore.decisions(NAME) != []


def test_of_a_generation_that_is_gone_nothing_stays(metastore: Metastore, lease: Lease) -> None:
    drained(metastore, lease, 0)
    drained(metastore, lease, 1)
    metastore.note_read_files(lease, 1, "events", {"a.json": FileMark(1, 1)})
    assert prune_records(metastore, lease, Retention(MONTH, {}, gone=[1])) == {
        "batches": 2, "staged_files": 2, "read_files": 1,
    }  # fmt: skip
    assert metastore.next_generation(NAME) == 2, "its number is not given again"


def test_of_a_file_sink_every_batch_stays(metastore: Metastore, lease: Lease) -> None:
    for batch_id in range(3):
        drained(metastore, lease, batch_id)
    records_grow_old(metastore, YEAR)
    assert pruned(metastore, lease, every_batch=True) == {}
    assert ids(metastore) == [0, 1, 2]


def test_leases_of_replayed_intervals_go_when_they_are_old(metastore: Metastore, lease: Lease) -> None:
    for interval in ("2024-01-01", "2024-01-02"):
        metastore.release(metastore.acquire(f"{NAME}#replay {interval}", "h", "r", MINUTE))
    metastore.acquire(f"{NAME}#replay 2024-01-03", "h", "r", MINUTE)
    metastore.release(metastore.acquire(f"{NAME}#replay", "h", "r", MINUTE))
    assert pruned(metastore, lease) == {}
    records_grow_old(metastore, YEAR)
    assert pruned(metastore, lease) == {"leases": 2}


@pytest.mark.usefixtures("few_stay")
def test_applications_stay_as_long_as_a_run_of_theirs(metastore: Metastore, lease: Lease) -> None:
    for app in ("old", "kept"):
        metastore.applications.begin(app, Requested("local", 2, 2**30, None), MINUTE)
    for number in range(FEW + 1):
        run = f"run-{number}"
        metastore.start_run(Run(run, NAME, application="kept" if number else "old"))
        metastore.finish_run(run, "succeeded")
    records_grow_old(metastore, YEAR)
    metastore.applications.begin("new", Requested("local", 2, 2**30, None), MINUTE)
    assert pruned(metastore, lease) == {"runs": 1, "applications": 1}
    found, _ = metastore.applications.since(metastore.now() - 2 * YEAR)
    assert {each.application_id for each in found} == {"kept", "new"}


def test_the_change_by_which_a_decision_holds_stays(metastore: Metastore, lease: Lease) -> None:
    """Without it the rows of the interval would be open again, and a second replay would double them."""
    for change_id in ("decided", "over", "open"):
        change = Change(change_id, NAME, "output", 1, "replay", "run-1")
        metastore.begin_change(lease, change)
    metastore.note_decision(lease, QuarantineDecision("decided", NAME, "interval", 1, 5, "keys"))
    metastore.end_changes(["decided", "over"], "committed")
    records_grow_old(metastore, YEAR)
    assert pruned(metastore, lease)["changes"] == 1
    asked = ["decided", "over", "open"]
    assert metastore.states_of_changes(asked) == {"decided": "committed", "open": "open"}
