"""Run records: started once, closed once, crashed by the next holder."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.event import listen

from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.operations.runs import PROGRESS_KEPT
from drawdown.metastore.records import Batch, Counts, Run, Verdict
from drawdown.metastore.tables import VERSION_TABLE
from drawdown.publishing.dead_runs import close_dead_runs

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


def test_a_dead_run_is_closed_with_the_counts_of_its_own_batches(metastore: Metastore) -> None:
    first = metastore.acquire("flights", "host pid 1", "r1", MINUTE)
    metastore.create_checkpoint(first, 1, "_drawdown/flights/checkpoint-1", {})
    metastore.start_run(Run("r1", "flights"))
    metastore.start_run(Run("r2", "flights"))
    for number, (run_id, rows) in enumerate([("r1", 5), ("r2", 7), ("r2", 11)]):
        batch = Batch("flights", 1, number, run_id, first.epoch, counts=Counts(read=rows, staged=rows))
        metastore.note_batch(first, batch, [], {})
    metastore.mark_committed(first, 1, 1)
    metastore.finish_run("r1", "succeeded", counts=Counts(read=5, staged=5))
    metastore.release(first)
    checkpoint = metastore.active_checkpoint("flights")
    assert checkpoint is not None
    close_dead_runs(metastore, metastore.acquire("flights", "host pid 2", "r3", MINUTE), checkpoint)
    dead = metastore.run("r2")
    assert dead is not None
    assert (dead.state, dead.batches) == ("crashed", 1), "what was only staged comes again"
    assert dead.counts == Counts(read=7, staged=7)


def test_a_failed_run_that_could_not_see_its_last_commits_gets_their_counts(metastore: Metastore) -> None:
    first = metastore.acquire("flights", "host pid 1", "r1", MINUTE)
    metastore.create_checkpoint(first, 1, "_drawdown/flights/checkpoint-1", {})
    metastore.start_run(Run("r1", "flights"))
    for number, rows in enumerate([5, 7, 11]):
        batch = Batch("flights", 1, number, "r1", first.epoch, counts=Counts(read=rows, staged=rows))
        metastore.note_batch(first, batch, [], {})
    seen = Counts(read=5, staged=5, late_groups=2)
    error = {"id": "storage.denied", "what": "no", "where": "s3://lake", "do": "renew the key"}
    metastore.finish_run("r1", "failed", generation=1, batches=1, counts=seen, error=error)
    metastore.mark_committed(first, 1, 1)
    checkpoint = metastore.active_checkpoint("flights")
    assert checkpoint is not None
    metastore.release(first)
    for again in ("r2", "r3"):
        lease = metastore.acquire("flights", again, again, MINUTE)
        close_dead_runs(metastore, lease, checkpoint)
        failed = metastore.run("r1")
        assert failed is not None
        assert (failed.state, failed.error, failed.batches) == ("failed", error, 2)
        assert failed.counts == Counts(read=12, staged=12, late_groups=2)
        metastore.release(lease)


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


def test_runs_of_a_request_are_found_however_old(metastore: Metastore) -> None:
    asked = {"dag_id": "drawdown__flights", "dag_run_id": "manual__2024"}
    metastore.start_run(Run("r1", "flights", origin={**asked, "try_number": 1}))
    metastore.start_run(Run("r2", "flights", origin={**asked, "dag_run_id": "manual__2025"}))
    metastore.start_run(Run("r3", "weather", origin={**asked, "about": "x"}))
    metastore.start_run(Run("r4", "flights", origin={"command_id": "c1", "about": asked["dag_run_id"]}))
    metastore.update_run("r1", origin={**asked, "try_number": 1, "rows": 2})
    assert [run.run_id for run in metastore.runs_of_origin(asked)] == ["r3", "r1"]
    assert [run.run_id for run in metastore.runs_of_origin(asked, pipeline="flights")] == ["r1"]
    assert [run.run_id for run in metastore.runs_of_origin({**asked, "about": "x"})] == ["r3"]
    assert [run.run_id for run in metastore.runs_of_origin({"command_id": "c1"})] == ["r4"]


def test_runs_of_a_request_are_found_by_an_index(tmp_path: Path) -> None:
    asked = {"dag_id": "drawdown__flights", "dag_run_id": "manual__2024"}
    said: list[tuple[str, Any]] = []

    def note(conn: object, cursor: object, statement: str, parameters: Any, *rest: object) -> None:
        said.append((statement, parameters))

    with Metastore.open(f"sqlite:///{tmp_path}/metastore.db") as store:
        listen(store._engine, "before_cursor_execute", note)
        store.runs_of_origin(asked)
        store.runs_of_origin(asked, pipeline="flights")
        with store._engine.connect() as conn:
            queries = [each for each in said if "FROM runs" in each[0]]
            plans = [conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {q}", values).all() for q, values in queries]
    assert len(plans) == 2
    assert all("ix_runs_request" in str(plan) for plan in plans), plans


def test_a_store_of_before_knows_the_requests_of_its_runs(store_url: str) -> None:
    asked = {"dag_id": "drawdown__flights", "dag_run_id": "manual__2024"}
    with Metastore.open(store_url) as store:
        for number in range(3):
            origin = {**asked, "dag_run_id": f"manual__{number}", "by": "ada"} if number else {"by": "ada"}
            store.start_run(Run(f"r{number}", "flights", origin=origin))
        store.start_run(Run("r3", "flights", origin={"command_id": "c1"}))
        with store._writer.begin() as conn:
            conn.execute(text("DROP INDEX ix_runs_request"))
            conn.execute(text("ALTER TABLE runs DROP COLUMN request"))
            conn.execute(text("ALTER TABLE leases DROP COLUMN process"))
            later = ("clusters", "cluster_instances", "claims", "figures", "backlogs", "announcements")
            for table in later:
                conn.execute(text(f"DROP TABLE {table}"))
            conn.execute(text("ALTER TABLE runs DROP COLUMN phases"))
            conn.execute(text("ALTER TABLE batches DROP COLUMN treatment"))
            for column in ("judging", "begun_batch"):
                conn.execute(text(f"ALTER TABLE checkpoints DROP COLUMN {column}"))
            conn.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0010'"))
    Metastore.upgrade(store_url)
    with Metastore.open(store_url) as store:
        [found] = store.runs_of_origin({**asked, "dag_run_id": "manual__2"})
        assert found.run_id == "r2"
        assert [run.run_id for run in store.runs_of_origin({"command_id": "c1"})] == ["r3"]
        with store._engine.begin() as conn:
            unasked = conn.execute(text("SELECT run_id FROM runs WHERE request IS NULL")).scalars().all()
        assert unasked == ["r0"]


def test_a_run_says_which_batches_it_made_visible_and_no_others(metastore: Metastore) -> None:
    """A discarded batch between two is not among them: the asset event would tell of its rows."""
    lease = metastore.acquire("flights", "host pid 1", "r1", MINUTE)
    metastore.start_run(Run("r1", "flights"))
    for batch_id in range(5):
        metastore.note_batch(lease, Batch("flights", 1, batch_id, "r1", 1), [], {})
    metastore.mark_committed(lease, 1, 4)
    metastore.record_verdict(lease, Verdict("flights", 1, "r1", 0, 4, "pass"))
    metastore.discard_batches(lease, 1, [2])
    metastore.mark_published(lease, 1, [0])
    metastore.mark_published(lease, 1, [1])
    metastore.mark_published(lease, 1, [3, 4])
    run = metastore.run("r1")
    assert run is not None
    assert run.origin["published"] == [[1, 0, 1], [1, 3, 4]]
