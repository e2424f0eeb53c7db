"""Spark applications in the metastore: noted, heard of, ended once, with each run's share."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pytest

from drawdown.metastore import Metastore
from drawdown.metastore.operations.applications import Measured, Requested
from drawdown.metastore.records import ApplicationRecord, Batch, Run

MINUTE = timedelta(seconds=60)
PRICE = {"currency": "EUR", "core_hour": "0.04", "gb_hour": "0"}
USED = Measured(start_us=20_000_000, cpu_us=90_000_001, peak_bytes=5, task_us={"r2": 30_000_000})


@pytest.fixture(autouse=True)
def begun(metastore: Metastore) -> None:
    """An application that is a minute old."""
    metastore.applications.begin("app", Requested("local", 2, 2**30, PRICE), MINUTE)


def only(metastore: Metastore) -> ApplicationRecord:
    [found], _ = metastore.applications.since(metastore.now() - 2 * MINUTE)
    return found


def run(metastore: Metastore, run_id: str, pipeline: str) -> None:
    metastore.start_run(Run(run_id, pipeline, application="app"))
    time.sleep(0.01)
    metastore.finish_run(run_id, "succeeded")


def test_it_began_when_its_first_process_did(metastore: Metastore) -> None:
    found = only(metastore)
    assert found.seen_at - found.started_at == MINUTE
    assert (found.cores, found.memory, found.price) == (2, 2**30, PRICE)
    assert (found.ended_at, found.cpu_us, found.idle_us) == (None, None, None)


def test_its_end_gives_each_run_its_share(metastore: Metastore) -> None:
    run(metastore, "r1", "flights")
    run(metastore, "r2", "weather")
    metastore.applications.end("app", USED)
    found = only(metastore)
    runs = [metastore.run(run_id) for run_id in ("r1", "r2")]
    usages = [each.usage for each in runs if each is not None and each.usage is not None]
    assert found.ended_at is not None
    took = (found.ended_at - found.started_at) // timedelta(microseconds=1)
    assert sum(usage["us"] for usage in usages) == took
    assert sum(usage["idle_us"] for usage in usages) == found.idle_us
    assert sum(usage["cpu_us"] for usage in usages) == found.cpu_us == 90_000_001
    assert usages[1]["cpu_us"] > usages[0]["cpu_us"] + 25_000_000
    assert all(usage["price"] == PRICE and usage["start_us"] == 20_000_000 for usage in usages)


def test_it_ends_once(metastore: Metastore) -> None:
    run(metastore, "r1", "flights")
    metastore.applications.end("app", USED)
    first = only(metastore)
    metastore.applications.end("app", Measured(None, 1, 1))
    assert only(metastore) == first


def test_without_a_run_all_its_time_is_idle(metastore: Metastore) -> None:
    metastore.applications.end("app", USED)
    found = only(metastore)
    assert found.ended_at is not None
    assert found.idle_us == (found.ended_at - found.started_at) // timedelta(microseconds=1)


def test_a_lease_that_is_renewed_is_a_sign_of_life(metastore: Metastore) -> None:
    lease = metastore.acquire("flights", "host", "r1", MINUTE)
    metastore.start_run(Run("r1", "flights", application="app"))
    before = only(metastore).seen_at
    time.sleep(0.01)
    metastore.renew(lease, MINUTE)
    renewed = only(metastore).seen_at
    time.sleep(0.01)
    metastore.finish_run("r1", "failed")
    assert before < renewed < only(metastore).seen_at


def test_a_run_of_another_application_gets_nothing(metastore: Metastore) -> None:
    metastore.start_run(Run("old", "flights"))
    run(metastore, "r1", "flights")
    metastore.applications.end("app", USED)
    old = metastore.run("old")
    assert old is not None
    assert (old.application, old.usage) == (None, None)


def test_runs_of_applications_that_began_before_are_left_out(metastore: Metastore) -> None:
    run(metastore, "r1", "flights")
    metastore.start_run(Run("r2", "flights"))
    applications, runs = metastore.applications.since(metastore.now() - MINUTE / 2)
    assert (applications, [each.run_id for each in runs]) == ([], ["r2"])
    assert metastore.applications.first_runs().keys() == {"flights"}


def test_executors_are_asked_for_beside_the_driver(metastore: Metastore) -> None:
    run(metastore, "r1", "flights")
    metastore.applications.end("app", replace(USED, executor_cores=4, executor_memory=3 * 2**30))
    found = only(metastore)
    assert (found.cores, found.memory) == (6, 4 * 2**30)
    [ended] = metastore.runs("flights")
    assert ended.usage is not None
    assert (ended.usage["cores"], ended.usage["memory"]) == (6, 4 * 2**30)


def test_the_runs_of_a_pipeline_come_with_the_profile_they_ran_on(metastore: Metastore) -> None:
    since = metastore.now()
    run(metastore, "r1", "flights")
    run(metastore, "r2", "weather")
    metastore.applications.end("app", USED)
    metastore.start_run(Run("r3", "flights"))
    metastore.start_run(Run("r4", "flights", kind="rebuild"))
    first, second = metastore.applications.of_pipeline("flights", since, limit=9)
    assert (first.run_id, first.cluster, first.state) == ("r1", "local", "succeeded")
    assert first.usage is not None
    assert (second.run_id, second.cluster, second.usage) == ("r3", None, None)
    [newest] = metastore.applications.of_pipeline("flights", since, limit=1)
    assert newest.run_id == "r3"
    assert metastore.applications.of_pipeline("flights", metastore.now() + MINUTE, limit=9) == []


def test_the_newest_batches_come_first(metastore: Metastore) -> None:
    lease = metastore.acquire("flights", "host", "r1", MINUTE)
    metastore.create_checkpoint(lease, 1, "there", {})
    for batch_id in range(4):
        metastore.note_batch(lease, Batch("flights", 1, batch_id, "r1", lease.epoch), [], {})
    assert [each.batch_id for each in metastore.newest_batches("flights", 1, 2)] == [3, 2]
    assert metastore.newest_batches("weather", 1, 2) == []
