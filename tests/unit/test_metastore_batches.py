"""Batches, staged files, maxima, checkpoints and verdicts: each step in order, each twice the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy.exc import StatementError

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.operations import batches
from drawdown.metastore.records import Batch, BatchStatus, Counts, Lease, Outcome, Run, StagedFile, Verdict

NOON = datetime(2013, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def lease(metastore: Metastore) -> Lease:
    return metastore.acquire("flights", "host pid 1", "r1", timedelta(seconds=60))


def batch(batch_id: int, run_id: str = "r1", read: int = 10) -> Batch:
    return Batch("flights", 0, batch_id, run_id, 1, counts=Counts(read=read, fed=read))


def output(path: str, rows: int = 5) -> StagedFile:
    return StagedFile("output", path, 100, rows, {"path": path, "stats": {"numRecords": rows}})


def note(store: Metastore, lease: Lease, *batch_ids: int) -> None:
    for batch_id in batch_ids:
        store.note_batch(lease, batch(batch_id), [output(f"part-{batch_id}.parquet")], {})


def judge(store: Metastore, lease: Lease, first: int, last: int, outcome: Outcome) -> Verdict:
    return store.record_verdict(lease, Verdict("flights", 0, "r1", first, last, outcome))


def statuses(store: Metastore) -> list[BatchStatus]:
    return [b.status for b in store.batches("flights", 0)]


def test_a_noted_batch_comes_back_whole(metastore: Metastore, lease: Lease) -> None:
    noted = Batch(
        pipeline="flights",
        generation=0,
        batch_id=3,
        run_id="r1",
        epoch=lease.epoch,
        offsets_from=[{"logOffset": 2}, None],
        offsets_to=[{"logOffset": 3}, {"weather": {"0": 17}}],
        watermark=NOON,
        counts=Counts(read=10, malformed=1, future=2, quarantined=3, fed=4, late=5, late_groups=6, warned=7),
        by_source={"flights": {"read": 10}},
    )
    files = [StagedFile("quarantine", "q.parquet", 7, 3), output("b.parquet"), output("a.parquet")]
    metastore.note_batch(lease, noted, files, {"flights": NOON})
    assert metastore.batch("flights", 0, 3) == noted
    assert metastore.batches("flights", 0) == [noted]
    in_order = [(3, files[2]), (3, files[1]), (3, files[0])]
    assert metastore.staged_files("flights", 0, [3]) == in_order
    assert metastore.staged_files("flights", 0, [3], table="quarantine") == in_order[2:]
    assert metastore.batch("flights", 0, 4) is None


def test_noting_a_batch_again_replaces_the_attempt_and_its_files(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0, 1)
    metastore.note_batch(lease, batch(1, run_id="r2", read=3), [output("second-try.parquet")], {})
    assert [(b.batch_id, b.run_id, b.counts.read) for b in metastore.batches("flights", 0)] == [
        (0, "r1", 10),
        (1, "r2", 3),
    ]
    paths = [(i, f.path) for i, f in metastore.staged_files("flights", 0, [0, 1])]
    assert paths == [(0, "part-0.parquet"), (1, "second-try.parquet")]


def test_a_batch_carries_the_epoch_of_the_lease_it_was_written_under(metastore: Metastore) -> None:
    for _ in range(3):
        lease = metastore.acquire("flights", "host pid 1", "r1", SECOND)
        metastore.release(lease)
    lease = metastore.acquire("flights", "host pid 1", "r1", SECOND)
    note(metastore, lease, 0)
    assert metastore.batches("flights", 0)[0].epoch == 4


def test_maxima_only_grow_and_keep_microseconds(metastore: Metastore, lease: Lease) -> None:
    micro = timedelta(microseconds=1)
    metastore.note_batch(lease, batch(0), [], {"flights": NOON, "weather": NOON})
    metastore.note_batch(lease, batch(1), [], {"flights": NOON - SECOND, "weather": NOON + micro})
    assert metastore.maxima("flights", 0) == {"flights": NOON, "weather": NOON + micro}
    assert metastore.maxima("flights", 1) == {}


@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ],
)
def test_any_time_of_the_calendar_is_kept_exactly(
    metastore: Metastore, lease: Lease, moment: datetime
) -> None:
    metastore.note_batch(lease, batch(0), [], {"flights": moment})
    assert metastore.maxima("flights", 0)["flights"] == moment


def test_a_time_of_another_zone_is_the_same_instant_and_one_without_a_zone_is_refused(
    metastore: Metastore, lease: Lease
) -> None:
    metastore.note_batch(lease, batch(0), [], {"flights": NOON.astimezone(timezone(timedelta(hours=-5)))})
    assert metastore.maxima("flights", 0)["flights"] == NOON
    with pytest.raises(StatementError, match="time without a zone"):
        metastore.note_batch(lease, batch(1), [], {"weather": datetime(2013, 1, 1)})
    assert metastore.batch("flights", 0, 1) is None


def test_only_staged_batches_up_to_the_commit_log_become_committed(
    metastore: Metastore, lease: Lease
) -> None:
    note(metastore, lease, 0, 1, 2)
    metastore.mark_committed(lease, 0, 1)
    metastore.mark_committed(lease, 0, 1)
    assert statuses(metastore) == ["committed", "committed", "staged"]
    judge(metastore, lease, 0, 1, "pass")
    metastore.mark_committed(lease, 0, 2)
    assert statuses(metastore) == ["passed", "passed", "committed"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("pass", "passed"),
        ("warn", "passed"),
        ("empty", "passed"),
        ("fail", "held"),
        ("error", "committed"),
    ],
)
def test_a_verdict_moves_the_committed_batches_of_its_range(
    metastore: Metastore, lease: Lease, outcome: Outcome, status: BatchStatus
) -> None:
    note(metastore, lease, 0, 1, 2, 3)
    metastore.mark_committed(lease, 0, 2)
    recorded = judge(metastore, lease, 1, 3, outcome)
    assert statuses(metastore) == ["committed", status, status, "staged"]
    assert [b.verdict for b in metastore.batches("flights", 0)] == [None, outcome, outcome, None]
    assert metastore.verdicts("flights") == [recorded]
    assert recorded.created_at is not None
    assert recorded.created_at <= metastore.now()


def test_a_slice_that_could_not_be_judged_can_be_judged_again(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0)
    metastore.mark_committed(lease, 0, 0)
    judge(metastore, lease, 0, 0, "error")
    judge(metastore, lease, 0, 0, "warn")
    assert [b.verdict for b in metastore.batches("flights", 0)] == ["warn"]
    assert [v.outcome for v in metastore.verdicts("flights")] == ["warn", "error"]
    assert [v.outcome for v in metastore.verdicts("flights", limit=1)] == ["warn"]


def test_a_verdicts_results_and_text_survive_whatever_data_they_quote(
    metastore: Metastore, lease: Lease
) -> None:
    results = [{"observed": "nul \0, lone \ud800, é, 🛩"}]
    verdict = Verdict("flights", 0, "r1", 0, 0, "fail", results, "nul \0, lone \ud800, é, 🛩")
    metastore.record_verdict(lease, verdict)
    kept = metastore.verdicts("flights")[0]
    assert kept.results == results
    assert kept.text == "nul \ufffd, lone ?, é, 🛩"


def test_judged_batches_are_published_once_and_again_is_no_error(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0, 1)
    metastore.mark_committed(lease, 0, 1)
    judge(metastore, lease, 0, 0, "pass")
    judge(metastore, lease, 1, 1, "fail")
    metastore.mark_published(lease, 0, [0])
    metastore.mark_published(lease, 0, [0, 1])
    assert statuses(metastore) == ["published", "published"]


def test_unjudged_batches_are_not_published_and_nothing_of_the_call_happens(
    metastore: Metastore, lease: Lease
) -> None:
    note(metastore, lease, 0, 1)
    metastore.mark_committed(lease, 0, 1)
    judge(metastore, lease, 0, 0, "pass")
    with pytest.raises(RefusedError) as refused:
        metastore.mark_published(lease, 0, [0, 1, 2])
    assert refused.value.id == "batch.unjudged"
    assert "1 is committed, 2 is not noted" in refused.value.what
    assert statuses(metastore) == ["passed", "committed"]


def test_a_published_batch_is_neither_staged_again_nor_discarded(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0)
    metastore.mark_committed(lease, 0, 0)
    judge(metastore, lease, 0, 0, "pass")
    metastore.mark_published(lease, 0, [0])
    with pytest.raises(RefusedError) as refused:
        metastore.note_batch(lease, batch(0), [output("again.parquet")], {"flights": NOON})
    assert refused.value.id == "batch.published"
    with pytest.raises(RefusedError) as refused:
        metastore.discard_batches(lease, 0, [0])
    assert refused.value.id == "batch.published"
    assert statuses(metastore) == ["published"]
    assert [f.path for _, f in metastore.staged_files("flights", 0, [0])] == ["part-0.parquet"]
    assert metastore.maxima("flights", 0) == {}


@pytest.mark.capability("RIGHT-05")
def test_accepting_an_older_copy_keeps_the_files_of_what_waits(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0, 1)
    metastore.mark_committed(lease, 0, 1)
    judge(metastore, lease, 0, 1, "pass")
    metastore.mark_published(lease, 0, [0, 1])
    note(metastore, lease, 2, 3)
    metastore.mark_committed(lease, 0, 2)
    judge(metastore, lease, 2, 2, "fail")
    metastore.forget_files(lease, 0, "output", 0)
    assert statuses(metastore) == ["published", "published", "held", "staged"]
    assert [batch_id for batch_id, _ in metastore.staged_files("flights", 0, range(4))] == [0, 2, 3]


def test_a_held_batch_can_be_discarded_and_then_not_published(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0)
    metastore.mark_committed(lease, 0, 0)
    judge(metastore, lease, 0, 0, "fail")
    metastore.discard_batches(lease, 0, [0])
    metastore.discard_batches(lease, 0, [0])
    assert statuses(metastore) == ["discarded"]
    with pytest.raises(RefusedError, match="0 is discarded"):
        metastore.mark_published(lease, 0, [0])


def test_batches_are_found_by_status_and_first_id(metastore: Metastore, lease: Lease) -> None:
    note(metastore, lease, 0, 1, 2, 3)
    metastore.mark_committed(lease, 0, 1)

    def ids(*wanted: BatchStatus, first_batch: int = 0) -> list[int]:
        found = metastore.batches("flights", 0, wanted or None, first_batch=first_batch)
        return [b.batch_id for b in found]

    assert ids("committed") == [0, 1]
    assert ids("committed", "staged", first_batch=1) == [1, 2, 3]
    assert ids(first_batch=3) == [3]
    assert metastore.batches("flights", 1) == []
    assert metastore.batches("weather", 0) == []


def test_a_slice_of_many_batches_is_read_and_published_whole(metastore: Metastore, lease: Lease) -> None:
    many = 2_345
    note(metastore, lease, 0, many)
    with metastore.fenced(lease) as conn:
        for batch_id in range(1, many):
            batches.note(conn, batch(batch_id), [output(f"part-{batch_id}.parquet")])
    metastore.mark_committed(lease, 0, many)
    judge(metastore, lease, 0, many, "pass")
    ids = [b.batch_id for b in metastore.batches("flights", 0, ["passed"])]
    assert ids == list(range(many + 1))
    assert [i for i, _ in metastore.staged_files("flights", 0, ids)] == ids
    metastore.mark_published(lease, 0, ids)
    assert set(statuses(metastore)) == {"published"}


def test_of_two_generations_drains_have_the_live_one_and_rebuilds_the_shadow(
    metastore: Metastore, lease: Lease
) -> None:
    assert metastore.active_checkpoint("flights") is None
    live = metastore.create_checkpoint(lease, 1, "checkpoint-1", {"keys": ["a"]})
    beside = metastore.of_rebuilds
    assert beside.active_checkpoint("flights") is None
    assert beside.next_generation("flights") == 2
    its_lease = beside.acquire("flights", "here", "r2", timedelta(minutes=1))
    shadow = beside.create_checkpoint(its_lease, 2, "checkpoint-2", {"keys": ["b"]})
    assert (metastore.active_checkpoint("flights"), beside.active_checkpoint("flights")) == (live, shadow)
    metastore.change_generations(lease, {1: {"state": "retired"}, 2: {"state": "live"}})
    assert [each.state for each in metastore.generations("flights")] == ["retired", "live"]
    found = metastore.active_checkpoint("flights")
    assert found is not None
    assert (found.generation, found.path, found.fingerprint) == (2, "checkpoint-2", {"keys": ["b"]})


def test_while_a_swap_is_under_way_nothing_else_is_done(metastore: Metastore, lease: Lease) -> None:
    metastore.create_checkpoint(lease, 1, "checkpoint-1", {})
    metastore.change_generations(lease, {1: {"state": "leaving"}})
    for side in (metastore, metastore.of_rebuilds):
        with pytest.raises(RefusedError, match="roll back of flights, generation 1, was cut off"):
            side.active_checkpoint("flights")


def test_the_runs_of_drains_and_of_rebuilds_are_closed_apart(metastore: Metastore, lease: Lease) -> None:
    for run_id, kind in (("d", "drain"), ("w", "watch"), ("b", "rebuild"), ("p", "replay")):
        metastore.start_run(Run(run_id, "flights", kind=kind))
    beside = metastore.of_rebuilds
    assert {run.run_id for run in metastore.open_runs("flights")} == {"d", "w"}
    assert {run.run_id for run in beside.open_runs("flights")} == {"b"}
    its_lease = beside.acquire("flights", "here", "r2", timedelta(minutes=1))
    assert [run.run_id for run in beside.crash_runs(its_lease)] == ["b"]
    assert {run.run_id for run in metastore.crash_runs(lease)} == {"d", "w"}


def test_a_checkpoint_is_noted_once_and_never_changed(metastore: Metastore, lease: Lease) -> None:
    first = metastore.create_checkpoint(lease, 0, "checkpoint-0", {"keys": ["a"]})
    assert metastore.create_checkpoint(lease, 0, "checkpoint-0", {"keys": ["a"]}) == first
    with pytest.raises(RefusedError) as refused:
        metastore.create_checkpoint(lease, 0, "checkpoint-0", {"keys": ["b"]})
    assert refused.value.id == "checkpoint.exists"
    assert metastore.active_checkpoint("flights") == first


def test_an_allowed_change_replaces_the_fingerprint_of_its_generation(
    metastore: Metastore, lease: Lease
) -> None:
    metastore.create_checkpoint(lease, 1, "checkpoint-1", {"keys": ["b"]})
    metastore.update_fingerprint(lease, 1, {"keys": ["b"], "rate": {"max": 2}})
    checkpoint = metastore.active_checkpoint("flights")
    assert checkpoint is not None
    assert checkpoint.fingerprint == {"keys": ["b"], "rate": {"max": 2}}
    with pytest.raises(RefusedError):
        metastore.create_checkpoint(lease, 1, "checkpoint-1", {"keys": ["b"]})


def test_a_stale_holder_leaves_the_fingerprint(metastore: Metastore, lease: Lease) -> None:
    metastore.create_checkpoint(lease, 0, "checkpoint-0", {"keys": ["a"]})
    metastore.release(lease)
    with pytest.raises(RefusedError) as refused:
        metastore.update_fingerprint(lease, 0, {})
    assert refused.value.id == "lease.lost"
    checkpoint = metastore.active_checkpoint("flights")
    assert checkpoint is not None
    assert checkpoint.fingerprint == {"keys": ["a"]}


def test_a_query_id_is_set_once(metastore: Metastore, lease: Lease) -> None:
    metastore.create_checkpoint(lease, 0, "checkpoint-0", {})
    metastore.set_query_id(lease, 0, "query-a")
    metastore.set_query_id(lease, 0, "query-a")
    with pytest.raises(RefusedError) as refused:
        metastore.set_query_id(lease, 0, "query-b")
    assert refused.value.id == "checkpoint.query-changed"
    checkpoint = metastore.active_checkpoint("flights")
    assert checkpoint is not None
    assert checkpoint.query_id == "query-a"


def test_a_restored_note_leaves_published_what_readers_see(metastore: Metastore, lease: Lease) -> None:
    """Also the last batch that comes back: published a second time, its rows would be there twice."""
    for batch_id in range(3):
        metastore.note_batch(lease, batch(batch_id), [], {})
    metastore.mark_committed(lease, 0, 2)
    rows = metastore.export_generation("flights", 0)
    metastore.record_verdict(lease, Verdict("flights", 0, "r1", 0, 2, "pass"))
    metastore.mark_published(lease, 0, [0, 1])
    metastore.replace_generation(lease, 0, rows, 1)
    assert [each.status for each in metastore.batches("flights", 0)] == [
        "published",
        "published",
        "committed",
    ]


def test_what_is_taken_back_are_the_batches_behind_the_last_one_and_their_files(
    metastore: Metastore, lease: Lease
) -> None:
    note(metastore, lease, 0, 1, 2)
    metastore.forget_batches(lease, 0, 1)
    assert [each.batch_id for each in metastore.batches("flights", 0)] == [0, 1]
    assert [batch_id for batch_id, _ in metastore.staged_files("flights", 0, [0, 1, 2])] == [0, 1]
