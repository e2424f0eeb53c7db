"""Leases: one holder, a growing epoch, and clocks that jump."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from drawdown.errors import BusyError, RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.operations import leases
from drawdown.metastore.records import Batch, Lease, Verdict

MINUTE = timedelta(seconds=60)
HOUR = timedelta(hours=1)


def take(store: Metastore, run_id: str, ttl: timedelta = MINUTE) -> Lease:
    return store.acquire("flights", f"host-{run_id} pid 7", run_id, ttl)


def jump_clock(store: Metastore, by: timedelta) -> None:
    """Moves the store's clock against everything stored: the same as moving what is stored the other way."""
    micros = int(by / timedelta(microseconds=1))
    with store._writer.begin() as conn:
        conn.execute(
            text(
                "UPDATE leases SET acquired_at = acquired_at - :d, renewed_at = renewed_at - :d,"
                " expires_at = expires_at - :d"
            ),
            {"d": micros},
        )


def test_a_free_pipeline_is_taken_with_the_asked_term(metastore: Metastore) -> None:
    before = metastore.now()
    lease = take(metastore, "r1")
    assert (lease.epoch, lease.run_id, lease.holder) == (1, "r1", "host-r1 pid 7")
    assert lease.expires_at - lease.acquired_at == MINUTE
    assert before <= lease.acquired_at <= metastore.now()
    assert metastore.holder_of("flights") == lease


def test_a_held_pipeline_refuses_a_second_run_and_names_the_holder(metastore: Metastore) -> None:
    lease = take(metastore, "r1")
    with pytest.raises(BusyError) as refused:
        take(metastore, "r2")
    assert refused.value.id == "lease.held"
    for part in (
        "flights",
        "host-r1 pid 7",
        "run r1",
        f"since {lease.acquired_at:%Y-%m-%d %H:%M:%S} UTC",
        f"until {lease.expires_at:%Y-%m-%d %H:%M:%S} UTC",
    ):
        assert part in refused.value.what
    assert refused.value.do == (
        f"wait until {lease.expires_at:%Y-%m-%d %H:%M:%S} UTC; or see `drawdown runs flights`"
    )
    assert metastore.holder_of("flights") == lease


def test_pipelines_do_not_hold_each_other_up(metastore: Metastore) -> None:
    take(metastore, "r1")
    assert metastore.acquire("weather", "other", "r2", MINUTE).epoch == 1


def test_a_released_lease_is_free_at_once_and_every_acquire_raises_the_epoch(metastore: Metastore) -> None:
    epochs = []
    for n in range(3):
        lease = take(metastore, f"r{n}")
        epochs.append(lease.epoch)
        metastore.release(lease)
        assert metastore.holder_of("flights") is None
    assert epochs == [1, 2, 3]


def test_renewing_moves_the_end_only(metastore: Metastore) -> None:
    lease = take(metastore, "r1")
    renewed = metastore.renew(lease, HOUR)
    assert renewed.expires_at > lease.expires_at + MINUTE
    assert (renewed.epoch, renewed.acquired_at) == (lease.epoch, lease.acquired_at)
    assert metastore.holder_of("flights") == renewed


def test_an_expired_lease_can_be_taken_over_and_the_old_holder_is_fenced(metastore: Metastore) -> None:
    old = take(metastore, "r1")
    jump_clock(metastore, by=HOUR)
    assert metastore.holder_of("flights") is None
    new = take(metastore, "r2")
    assert new.epoch == 2
    with pytest.raises(RefusedError) as fenced:
        metastore.create_checkpoint(old, 0, "checkpoint-0", {})
    assert fenced.value.id == "lease.lost"
    assert "host-r2 pid 7 (run r2) holds it since" in fenced.value.what
    with pytest.raises(RefusedError, match="r1 no longer has the lease"):
        metastore.renew(old, MINUTE)
    assert metastore.active_checkpoint("flights") is None
    assert metastore.holder_of("flights") == new


def test_an_expired_lease_that_nobody_took_still_writes_and_renews(metastore: Metastore) -> None:
    lease = take(metastore, "r1")
    jump_clock(metastore, by=HOUR)
    assert metastore.create_checkpoint(lease, 0, "checkpoint-0", {}).generation == 0
    metastore.renew(lease, MINUTE)
    with pytest.raises(BusyError):
        take(metastore, "r2")


def test_a_released_lease_writes_nothing_more(metastore: Metastore) -> None:
    lease = take(metastore, "r1")
    metastore.release(lease)
    with pytest.raises(RefusedError, match="it is not held now"):
        metastore.create_checkpoint(lease, 0, "checkpoint-0", {})
    assert metastore.active_checkpoint("flights") is None


def test_releasing_a_lost_lease_does_not_free_the_new_holder(metastore: Metastore) -> None:
    old = take(metastore, "r1")
    jump_clock(metastore, by=HOUR)
    new = take(metastore, "r2")
    metastore.release(old)
    assert metastore.holder_of("flights") == new


def test_an_epoch_that_a_metastore_gave_twice_is_its_last_holders_alone(metastore: Metastore) -> None:
    first = take(metastore, "r1")
    with metastore._writer.begin() as conn:  # the last transactions are lost: a fail-over, an older copy
        conn.execute(text("DELETE FROM leases"))
    second = take(metastore, "r2")
    assert (first.epoch, first.name) == (second.epoch, second.name)
    with pytest.raises(RefusedError, match="no longer has the lease"):
        metastore.check_lease(first)
    metastore.release(first)
    metastore.check_lease(second)


def test_a_clock_set_back_blocks_a_dead_holders_lease_for_one_term_and_no_longer(
    metastore: Metastore,
) -> None:
    take(metastore, "r1")
    jump_clock(metastore, by=-24 * HOUR)
    with pytest.raises(BusyError):
        take(metastore, "r2")
    held = metastore.holder_of("flights")
    assert held is not None
    assert timedelta(0) < held.expires_at - metastore.now() <= MINUTE
    jump_clock(metastore, by=MINUTE)
    assert take(metastore, "r2").epoch == 2


def test_a_clock_set_back_leaves_a_living_holder_its_lease(metastore: Metastore) -> None:
    lease = take(metastore, "r1")
    jump_clock(metastore, by=-24 * HOUR)
    with pytest.raises(BusyError):
        take(metastore, "r2")
    metastore.renew(lease, HOUR)
    jump_clock(metastore, by=MINUTE)
    with pytest.raises(BusyError):
        take(metastore, "r2")
    assert metastore.create_checkpoint(lease, 0, "checkpoint-0", {}).path == "checkpoint-0"


def test_what_fails_inside_a_fenced_transaction_is_rolled_back(metastore: Metastore) -> None:
    lease = take(metastore, "r1")

    def change_and_fail() -> None:
        with metastore.fenced(lease) as conn:
            conn.execute(text("UPDATE leases SET holder = 'changed'"))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert metastore.holder_of("flights") == lease


def test_a_lease_of_one_pipeline_does_not_write_anothers_batches(metastore: Metastore) -> None:
    lease = take(metastore, "r1")
    with pytest.raises(ValueError, match="does not cover weather"):
        metastore.note_batch(lease, Batch("weather", 0, 0, "r1", 1), [], {})
    with pytest.raises(ValueError, match="does not cover weather"):
        metastore.record_verdict(lease, Verdict("weather", 0, "r1", 0, 0, "pass"))


def test_at_the_very_moment_of_its_end_a_lease_is_free(
    metastore: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = take(metastore, "r1").expires_at
    monkeypatch.setattr(leases, "read_clock", lambda conn: end - timedelta(microseconds=1))
    with pytest.raises(BusyError):
        take(metastore, "r2")
    monkeypatch.setattr(leases, "read_clock", lambda conn: end)
    assert metastore.holder_of("flights") is None
    assert take(metastore, "r2").epoch == 2


def test_a_clock_set_back_behind_a_renewal_leaves_the_term_of_that(metastore: Metastore) -> None:
    """Not the time since the lease was taken: a dead holder's would block for as long again."""
    lease = take(metastore, "r1")
    jump_clock(metastore, by=HOUR)
    metastore.renew(lease, MINUTE)
    jump_clock(metastore, by=-24 * HOUR)
    with pytest.raises(BusyError):
        take(metastore, "r2")
    held = metastore.holder_of("flights")
    assert held is not None
    assert held.expires_at - metastore.now() <= MINUTE
