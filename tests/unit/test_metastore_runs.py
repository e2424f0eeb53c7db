"""Run records: started once, closed once, crashed by the next holder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Counts, Run
from drawdown.metastore.runs import PROGRESS_KEPT

pytest_plugins = ("tests.fixtures.metastores",)

MINUTE = timedelta(seconds=60)


def test_a_run_starts_running_by_the_stores_clock(metastore: Metastore) -> None:
    long_ago = datetime(2013, 1, 1, tzinfo=UTC)
    before = metastore.now()
    origin = {"dag_id": "flights", "try_number": 2}
    run = metastore.start_run(
        Run("r1", "flights", "drain", holder="host pid 1", origin=origin, started_at=long_ago)
    )
    assert run.state == "running"
    assert run.started_at is not None
    assert before <= run.started_at <= metastore.now()
    assert metastore.run("r1") == run
    assert metastore.run("r2") is None


def test_a_run_id_is_used_once(metastore: Metastore) -> None:
    first = metastore.start_run(Run("r1", "flights"))
    with pytest.raises(RefusedError) as refused:
        metastore.start_run(Run("r1", "weather"))
    assert refused.value.id == "run.exists"
    assert metastore.run("r1") == first


def test_fields_are_written_while_the_run_goes_on_and_at_its_end(metastore: Metastore) -> None:
    metastore.start_run(Run("r1", "flights"))
    watermark = datetime(2013, 1, 1, 12, tzinfo=UTC)
    metastore.update_run("r1", generation=0, batches=2, counts=Counts(read=5, fed=5), watermark=watermark)
    ended = metastore.finish_run(
        "r1",
        "failed",
        verdict="fail",
        stop_reason="audit",
        error={"id": "audit.failed", "what": "w", "where": "", "do": ""},
    )
    assert (ended.state, ended.generation, ended.batches) == ("failed", 0, 2)
    assert (ended.counts, ended.watermark) == (Counts(read=5, fed=5), watermark)
    assert (ended.verdict, ended.stop_reason) == ("fail", "audit")
    assert ended.error == {"id": "audit.failed", "what": "w", "where": "", "do": ""}
    assert ended.started_at is not None
    assert ended.ended_at is not None
    assert ended.started_at <= ended.ended_at
    assert metastore.run("r1") == ended


def test_a_runs_progress_keeps_its_last_entries(metastore: Metastore) -> None:
    metastore.start_run(Run("r1", "flights"))
    run = metastore.update_run("r1", progress=[{"batchId": n} for n in range(1000)])
    assert [p["batchId"] for p in run.progress] == list(range(1000 - PROGRESS_KEPT, 1000))


def test_identity_state_and_times_of_a_run_cannot_be_rewritten(metastore: Metastore) -> None:
    run = metastore.start_run(Run("r1", "flights"))
    for field in ("run_id", "pipeline", "state", "started_at", "ended_at", "colour"):
        with pytest.raises(TypeError, match=field):
            metastore.update_run("r1", **{field: "x"})
    assert metastore.run("r1") == run


def test_an_unknown_run_is_refused(metastore: Metastore) -> None:
    with pytest.raises(RefusedError, match="no run r1"):
        metastore.update_run("r1", batches=1)
    with pytest.raises(RefusedError, match="no run r1"):
        metastore.finish_run("r1", "succeeded")


def test_a_run_ends_once(metastore: Metastore) -> None:
    metastore.start_run(Run("r1", "flights"))
    ended = metastore.finish_run("r1", "succeeded", batches=1)
    assert metastore.finish_run("r1", "failed", batches=2) == ended


def test_the_next_holder_closes_what_a_dead_one_left_running(metastore: Metastore) -> None:
    for run_id, pipeline in (("r1", "flights"), ("r2", "flights"), ("r3", "weather"), ("r4", "flights")):
        metastore.start_run(Run(run_id, pipeline))
    metastore.finish_run("r2", "succeeded")
    lease = metastore.acquire("flights", "host pid 1", "r4", MINUTE)
    crashed = metastore.crash_runs(lease)
    assert [(r.run_id, r.state) for r in crashed] == [("r1", "crashed")]
    assert crashed == [metastore.run("r1")]
    assert crashed[0].ended_at is not None
    assert metastore.crash_runs(lease) == []
    states = {r.run_id: r.state for r in metastore.runs()}
    assert states == {"r1": "crashed", "r2": "succeeded", "r3": "running", "r4": "running"}
    assert metastore.finish_run("r1", "succeeded").state == "crashed"


def test_runs_are_listed_newest_first_of_one_pipeline_or_all(metastore: Metastore) -> None:
    for n in range(6):
        metastore.start_run(Run(f"r{n}", "flights" if n % 2 else "weather"))
    assert [r.run_id for r in metastore.runs()] == ["r5", "r4", "r3", "r2", "r1", "r0"]
    assert [r.run_id for r in metastore.runs("flights", limit=2)] == ["r5", "r3"]


def test_counts_add_up_and_balance() -> None:
    total = Counts(read=10, malformed=1, future=2, quarantined=3, fed=4) + Counts(read=1, fed=1, published=9)
    assert total == Counts(read=11, malformed=1, future=2, quarantined=3, fed=5, published=9)
    assert total.balanced
    assert not (total + Counts(read=1)).balanced
