"""Decisions about the rows of a quarantine: kept once, under the lease, and forgotten with their batch."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Change, Lease, QuarantineDecision


@pytest.fixture
def lease(metastore: Metastore) -> Lease:
    return metastore.acquire("flights", "host pid 1", "r1", timedelta(minutes=1))


def replay(batch_id: int) -> QuarantineDecision:
    feeds = {"events": {"path": "feed", "rows": 2, "late": 0, "greatest": None}}
    keys = f"keys-{batch_id}.parquet"
    return QuarantineDecision(f"replay-{batch_id}", "flights", "replay", 1, 2, keys, batch_id, 7, feeds)


def test_what_was_decided_is_read_oldest_first(metastore: Metastore, lease: Lease) -> None:
    dropped = QuarantineDecision("drop", "flights", "drop", 1, 1, "keys.parquet", origin={"by": "ada"})
    noted = [metastore.note_decision(lease, each) for each in (replay(3), dropped)]
    assert metastore.decisions("flights") == noted
    assert noted[0].decided_at is not None
    assert metastore.replays("flights", 1, first_batch=3) == noted[:1]
    assert metastore.replays("flights", 1, first_batch=4) == []
    assert metastore.replays("flights", 2, first_batch=0) == []


def test_a_batch_that_is_taken_back_takes_its_replays_along(metastore: Metastore, lease: Lease) -> None:
    dropped = QuarantineDecision("drop", "flights", "drop", 1, 1, "keys.parquet")
    for each in (replay(3), replay(4), dropped):
        metastore.note_decision(lease, each)
    metastore.forget_batches(lease, 1, 3)
    assert [each.decision_id for each in metastore.decisions("flights")] == ["replay-3", "drop"]


def test_who_lost_the_lease_decides_nothing(metastore: Metastore, lease: Lease) -> None:
    metastore.release(lease)
    with pytest.raises(RefusedError) as refused:
        metastore.note_decision(lease, replay(1))
    assert refused.value.id == "lease.lost"
    assert metastore.decisions("flights") == []


def test_a_snapshot_brings_back_decisions_that_a_lost_metastore_took_along(
    metastore: Metastore, lease: Lease
) -> None:
    metastore.create_checkpoint(lease, 1, "checkpoint-1", {})
    noted = metastore.note_decision(lease, replay(3))
    exported = metastore.export_generation("flights", 1)
    later = metastore.note_decision(lease, replay(4))
    metastore.forget_batches(lease, 1, 2)
    assert metastore.decisions("flights") == []
    metastore.replace_generation(lease, 1, exported, last_batch=3)
    assert metastore.decisions("flights") == [noted]
    dropped = metastore.note_decision(lease, replace(later, decision_id="drop", kind="drop", batch_id=-1))
    metastore.replace_generation(lease, 1, exported, last_batch=3)
    assert metastore.decisions("flights") == [noted, dropped], "what was decided meanwhile stays"


def test_what_a_replayed_interval_brought_is_open_again_behind_a_batch_that_is_taken_back(
    metastore: Metastore, lease: Lease
) -> None:
    turn = metastore.acquire("flights#replay", "host pid 1", "r2", timedelta(minutes=1))
    for change_id, visible in (("c3", 3), ("c4", 4)):
        metastore.begin_change(turn, Change(change_id, "flights", "output", 1, "replay", "r2"))
        noted = QuarantineDecision(change_id, "flights", "interval", 1, 1, "keys.parquet", visible)
        metastore.note_decision(turn, noted)
    metastore.end_changes(["c3"], "committed")
    assert metastore.states_of_changes(["c3", "c4", "c5"]) == {"c3": "committed", "c4": "open"}
    assert metastore.replays("flights", 1, first_batch=0) == [], "no batch has to take them"
    metastore.forget_batches(lease, 1, 3)
    assert [each.decision_id for each in metastore.decisions("flights")] == ["c3"]
