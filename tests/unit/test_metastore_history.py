"""The work of one drain in the metastore does not grow with the runs that were before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert

from drawdown.metastore import Metastore, tables
from drawdown.metastore.records import Batch, Checkpoint, Counts, Run, StagedFile, Verdict
from drawdown.publishing.dead_runs import close_dead_runs

MINUTE = timedelta(seconds=60)
NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
COUNTS = {f.name: 1 for f in fields(Counts)}
STEP = 50  # instructions of SQLite's machine between two counts


def write_history(store: Metastore, length: int) -> None:
    run = Run("", "flights", state="succeeded", generation=0, started_at=NOON, ended_at=NOON)
    batch = Batch("flights", 0, 0, "", 1, watermark=NOON, status="published", verdict="pass")
    rows: dict[Any, list[dict[str, Any]]] = {tables.runs: [], tables.batches: [], tables.staged_files: []}
    for n in range(length):
        rows[tables.runs].append(columns(run) | {"run_id": f"old-{n:06}"})
        rows[tables.batches].append(columns(batch) | {"run_id": f"old-{n:06}", "batch_id": n})
        key = {"pipeline": "flights", "generation": 0, "batch_id": n}
        file = {"table_name": "output", "path": f"part-{n}", "size": 1, "rows": 1, "action": {}}
        rows[tables.staged_files].append(key | file)
    with store._writer.begin() as conn:
        for table, some in rows.items():
            conn.execute(insert(table), some)


def columns(record: Run | Batch) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in fields(record) if f.name != "counts"} | COUNTS


def drain(store: Metastore, batch_id: int) -> None:
    lease = store.acquire("flights", "host pid 1", "now", MINUTE)
    store.start_run(Run("now", "flights"))
    store.crash_runs(lease)
    store.active_checkpoint("flights")
    store.batches("flights", 0, ["staged", "committed", "passed", "held"])
    store.maxima("flights", 0)
    file = StagedFile("output", "part-now", 1, 1)
    store.note_batch(lease, Batch("flights", 0, batch_id, "now", 0), [file], {"flights": NOON})
    store.mark_committed(lease, 0, batch_id)
    ids = [b.batch_id for b in store.batches("flights", 0, ["committed"])]
    assert ids == [batch_id]
    store.staged_files("flights", 0, ids)
    store.record_verdict(lease, Verdict("flights", 0, "now", batch_id, batch_id, "pass"))
    store.mark_published(lease, 0, ids)
    store.batches("flights", 0, first_batch=batch_id)
    store.runs("flights", limit=10)
    store.runs(limit=10)
    store.finish_run("now", "succeeded", batches=1)
    store.release(lease)


def after_a_crash(store: Metastore, batch_id: int) -> None:
    """What the first run after a crash asks the metastore, to close the run that died."""
    store.start_run(Run("dead", "flights"))
    lease = store.acquire("flights", "host pid 1", "dead", MINUTE)
    file = StagedFile("output", "/root/place/dead/part", 1, 1)
    store.note_batch(lease, Batch("flights", 0, batch_id, "dead", 0), [file], {})
    store.release(lease)
    lease = store.acquire("flights", "host pid 2", "now", MINUTE)
    checkpoint = Checkpoint("flights", 0, "", None, {}, NOON)
    assert store.files_below("flights", 0, "/root/place/dead") == [file.path]
    close_dead_runs(store, lease, checkpoint)
    assert store.run("dead").state == "crashed"


def instructions(path: Path, history: int, work: Callable[[Metastore, int], None] = drain) -> int:
    url = f"sqlite:///{path}"
    with Metastore.open(url) as store:
        write_history(store, history)
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += STEP
        return 0

    with Metastore.open(url) as store:
        event.listen(store._engine, "connect", lambda c, _: c.set_progress_handler(count, STEP))
        store._engine.dispose()
        work(store, history)
    return taken


def test_a_drain_after_ten_thousand_runs_takes_the_instructions_of_one_after_twenty(tmp_path: Path) -> None:
    few = instructions(tmp_path / "few.db", 20)
    many = instructions(tmp_path / "many.db", 10_000)
    assert few > 10 * STEP
    assert many <= 1.15 * few


@pytest.mark.capability("RIGHT-10")
def test_a_run_after_a_crash_does_not_make_records_of_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database looks through its rows; what took seconds and gigabytes were the records made of them."""
    made: list[str] = []
    for name, kind in (("Batch", Batch), ("StagedFile", StagedFile)):
        init = kind.__init__
        monkeypatch.setattr(
            kind, "__init__", lambda self, *a, _n=name, _i=init, **k: (made.append(_n), _i(self, *a, **k))[1]
        )
    numbers = []
    for history in (20, 2_000):
        with Metastore.open(f"sqlite:///{tmp_path / str(history)}.db") as store:
            write_history(store, history)
            made.clear()
            after_a_crash(store, history)
            numbers.append(len(made))
    assert numbers[1] == numbers[0]
