"""Several real processes on one metastore: contenders, killed holders, first openers, a full disk."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from drawdown.errors import BusyError, DrawdownError, RefusedError
from drawdown.metastore import Metastore, connect, migrate
from drawdown.metastore.operations import batches
from drawdown.metastore.records import Batch, Lease, Run, StagedFile, Verdict
from drawdown.metastore.tables import VERSION_TABLE, metadata

MINUTE = timedelta(seconds=60)
SECOND = timedelta(seconds=1)
PIPELINES = 5
PATIENCE = 60  # seconds a test waits for its processes

# A server that has the imports done and no threads: each process starts fast, and is a process of its own.
processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["drawdown.metastore", "psycopg"])


@contextmanager
def started(target: Callable[..., None], *arguments: Any) -> Iterator[BaseProcess]:
    process = processes.Process(target=target, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join(PATIENCE)


# Fifty contenders


def contend(url: str, me: int, rounds: int, line: Any, results: Any) -> None:
    with Metastore.open(url) as store:
        for number in range(rounds):
            line.wait(PATIENCE)
            lease = None
            try:
                lease = store.acquire("flights", f"contender {me}", f"run-{number}-{me}", MINUTE)
                results.put((number, me, lease.epoch))
            except BusyError as busy:
                results.put((number, me, busy.id))
            line.wait(PATIENCE)
            if lease is not None:
                store.release(lease)


@pytest.mark.sampled
def test_of_fifty_processes_exactly_one_gets_the_lease_in_each_round(store_url: str) -> None:
    contenders, rounds = 50, 5
    Metastore.open(store_url).close()
    line, results = processes.Barrier(contenders), processes.Queue()
    crowd = [
        processes.Process(target=contend, args=(store_url, n, rounds, line, results), daemon=True)
        for n in range(contenders)
    ]
    for process in crowd:
        process.start()
    answers = [results.get(timeout=PATIENCE) for _ in range(contenders * rounds)]
    for process in crowd:
        process.join(PATIENCE)
    assert [process.exitcode for process in crowd] == [0] * contenders
    for number in range(rounds):
        of_round = [answer for n, _, answer in answers if n == number]
        assert [a for a in of_round if a != "lease.held"] == [number + 1]
        assert of_round.count("lease.held") == contenders - 1


# Fifty runs on several pipelines


def run_often(url: str, me: int, runs_each: int, line: Any, results: Any) -> None:
    """Each run takes the lease of one of five pipelines, notes and publishes a batch, gives it back."""
    pipeline = f"pipeline_{me % PIPELINES}"
    with Metastore.open(url) as store:
        line.wait(PATIENCE)
        try:
            for number in range(runs_each):
                lease = acquire_in_turn(store, pipeline, f"run-{me}-{number}")
                store.start_run(Run(lease.run_id, pipeline, holder=lease.holder))
                if lease.epoch == 1:
                    store.create_checkpoint(lease, 1, f"_drawdown/{pipeline}/checkpoint-1", {})
                batch_id = len(store.batches(pipeline, 1))
                batch = Batch(pipeline, 1, batch_id, lease.run_id, lease.epoch, [], [batch_id])
                store.note_batch(lease, batch, [StagedFile("output", f"file-{batch_id}", 1, 1, {})], {})
                store.mark_committed(lease, 1, batch_id)
                verdict = Verdict(pipeline, 1, lease.run_id, batch_id, batch_id, "pass", [], "")
                store.record_verdict(lease, verdict)
                store.mark_published(lease, 1, [batch_id])
                store.finish_run(lease.run_id, "succeeded", batches=1)
                store.release(lease)
            results.put("done")
        except DrawdownError as error:
            results.put(str(error))


def acquire_in_turn(store: Metastore, pipeline: str, run_id: str) -> Lease:
    """As a scheduler tries again: refused while another run has it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return store.acquire(pipeline, f"process {os.getpid()}", run_id, MINUTE)
        except BusyError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


@pytest.mark.full
def test_fifty_runs_at_a_time_lose_no_note_and_meet_no_error(store_url: str) -> None:
    crowd_size, runs_each = 50, 2
    Metastore.open(store_url).close()
    line, results = processes.Barrier(crowd_size), processes.Queue()
    crowd = [
        processes.Process(target=run_often, args=(store_url, n, runs_each, line, results), daemon=True)
        for n in range(crowd_size)
    ]
    for process in crowd:
        process.start()
    assert [results.get(timeout=2 * PATIENCE) for _ in crowd] == ["done"] * crowd_size
    for process in crowd:
        process.join(PATIENCE)
    with Metastore.open(store_url) as store:
        for pipeline in (f"pipeline_{n}" for n in range(PIPELINES)):
            noted = store.batches(pipeline, 1)
            # Two writers at a time would have counted the same batches: one note over the other.
            assert [batch.batch_id for batch in noted] == list(range(crowd_size * runs_each // PIPELINES))
            assert [batch.epoch for batch in noted] == [batch.batch_id + 1 for batch in noted]
            assert {batch.status for batch in noted} == {"published"}
            assert len(store.staged_files(pipeline, 1, range(len(noted)))) == len(noted)
            runs = store.runs(pipeline, limit=1000)
            assert sorted(run.run_id for run in runs) == sorted(batch.run_id for batch in noted)
            assert {run.state for run in runs} == {"succeeded"}
            assert store.holder_of(pipeline) is None


# First openers


def open_first(url: str, line: Any, results: Any) -> None:
    line.wait(PATIENCE)
    try:
        with Metastore.open(url) as store:
            store.start_run(Run(f"run-{os.getpid()}", "flights"))
        results.put("opened")
    except DrawdownError as error:
        results.put(str(error))


def test_eight_processes_open_a_fresh_metastore_at_once(store_url: str) -> None:
    openers = 8
    line, results = processes.Barrier(openers), processes.Queue()
    crowd = [
        processes.Process(target=open_first, args=(store_url, line, results), daemon=True)
        for _ in range(openers)
    ]
    for process in crowd:
        process.start()
    assert [results.get(timeout=PATIENCE) for _ in crowd] == ["opened"] * openers
    for process in crowd:
        process.join(PATIENCE)
    with Metastore.open(store_url) as store:
        assert len(store.runs()) == openers
        names = set(inspect(store._engine).get_table_names())
        assert names == {*metadata.tables, VERSION_TABLE}


def migrate_and_hang(url: str, ready: Any) -> None:
    engine = connect.connect(url)
    with engine.connect().execution_options(**connect.WRITES) as conn, conn.begin():
        migrate._upgrade(conn)
        ready.set()
        time.sleep(PATIENCE)


def test_a_process_killed_in_the_middle_of_the_first_migration_leaves_an_empty_store(store_url: str) -> None:
    ready = processes.Event()
    with started(migrate_and_hang, store_url, ready) as process:
        assert ready.wait(PATIENCE)
        process.kill()
        process.join(PATIENCE)
        with Metastore.open(store_url) as store:
            assert store.runs() == []
            store.start_run(Run("r1", "flights"))


# Holders that die or freeze


def hold_and_hang_in_a_transaction(url: str, ready: Any) -> None:
    with Metastore.open(url) as store:
        lease = store.acquire("flights", "the dead", "r1", SECOND)
        store.start_run(Run("r1", "flights"))
        store.note_batch(lease, Batch("flights", 0, 0, "r1", 0), [], {})
        with store.fenced(lease) as conn:
            files = [StagedFile("output", f"part-{n}", 1, 1) for n in range(5000)]
            batches.note(conn, Batch("flights", 0, 1, "r1", lease.epoch), files)
            ready.set()
            time.sleep(PATIENCE)


def test_a_holder_killed_in_the_middle_of_a_transaction_leaves_a_usable_store(store_url: str) -> None:
    ready = processes.Event()
    with started(hold_and_hang_in_a_transaction, store_url, ready) as process:
        assert ready.wait(PATIENCE)
        process.kill()
        process.join(PATIENCE)
        with Metastore.open(store_url) as store:
            assert [b.batch_id for b in store.batches("flights", 0)] == [0]
            assert store.staged_files("flights", 0, [1]) == []
            lease = acquire_when_free(store, "r2")
            assert lease.epoch == 2
            assert [(r.run_id, r.state) for r in store.crash_runs(lease)] == [("r1", "crashed")]
            store.note_batch(lease, Batch("flights", 0, 1, "r2", 0), [], {})
            assert [b.run_id for b in store.batches("flights", 0)] == ["r1", "r2"]


def write_when_told(url: str, parent: Any) -> None:
    with Metastore.open(url) as store:
        lease = store.acquire("flights", "the frozen", "r1", SECOND)
        parent.send("holding")
        parent.recv()
        try:
            store.note_batch(lease, Batch("flights", 0, 0, "r1", 0), [], {})
            parent.send(("wrote", ""))
        except RefusedError as refused:
            parent.send((refused.id, refused.what))


def test_a_holder_that_wakes_after_its_lease_was_taken_writes_nothing(store_url: str) -> None:
    # A pipe, not an Event: a process stopped inside an Event's lock would block this one too.
    here, there = processes.Pipe()
    with started(write_when_told, store_url, there) as process:
        assert here.poll(PATIENCE)
        assert here.recv() == "holding"
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        with Metastore.open(store_url) as store:
            new = acquire_when_free(store, "r2")
            here.send("write")
            os.kill(process.pid, signal.SIGCONT)
            assert here.poll(PATIENCE)
            identity, what = here.recv()
            assert identity == "lease.lost"
            assert "the next (run r2) holds it since" in what
            assert store.batches("flights", 0) == []
            assert store.holder_of("flights") == new


def acquire_when_free(store: Metastore, run_id: str) -> Lease:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return store.acquire("flights", "the next", run_id, MINUTE)
        except BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


# A full disk


def fill_up(url: str, limit: int, answers: Any) -> None:
    # A file size limit is how a full disk looks to one process: the write fails in the middle.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    with Metastore.open(url) as store:
        lease = store.acquire("flights", "host pid 1", "r1", SECOND)
        written = 0
        try:
            while True:
                files = [StagedFile("output", f"part-{n}", 1, 1, {"stats": "x" * 100}) for n in range(500)]
                store.note_batch(lease, Batch("flights", 0, written, "r1", 0), files, {})
                written += 1
        except DrawdownError as error:
            answers.put((error.id, written))


@pytest.mark.parametrize("room", [500_000, 1_000_000, 1_500_000])
def test_a_disk_that_fills_up_loses_no_batch_and_tears_none(tmp_path: Path, room: int) -> None:
    path = tmp_path / "metastore.db"
    url = f"sqlite:///{path}"
    Metastore.open(url).close()
    answers = processes.Queue()
    with started(fill_up, url, room, answers):
        identity, written = answers.get(timeout=PATIENCE)
    assert identity == "metastore.full"
    with Metastore.open(url) as store:
        ids = [b.batch_id for b in store.batches("flights", 0)]
        assert ids == list(range(written))
        assert len(store.staged_files("flights", 0, ids)) == 500 * written
        lease = acquire_when_free(store, "r2")
        store.note_batch(lease, Batch("flights", 0, written, "r2", 0), [], {})
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
