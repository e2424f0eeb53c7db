"""What grows with what: `python -m tests.benchmarks.scale` measures each at several sizes, without Spark.

Seconds are processor time of this process, the median of three, so that a busy machine does not count.
Records are written straight into a SQLite metastore. Kafka's partitions are a made-up answer of the admin
client: no broker here has 10,000.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import insert, select, update

from drawdown.brokers import offsets
from drawdown.fleet.standing import standing
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Counts, Lease, Run
from drawdown.metastore.tables import batches, runs
from drawdown.observe.figures import glance
from drawdown.sources.kafka import backlog
from drawdown.spec import iter_pipelines, load_project
from drawdown.workspace import Workspace
from tests.support.fleet_records import FleetRecords

TIMES = 3
AT_ONCE = 5_000
TTL = timedelta(hours=1)


def main(wanted: Sequence[str]) -> None:
    """Print a line for each measure and size."""
    for measure in (of_runs, of_batches, of_pipelines, of_partitions):
        if not wanted or measure.__name__.removeprefix("of_") in wanted:
            measure()


def of_runs() -> None:
    """Runs of one pipeline in the metastore."""
    for size in (1_000, 10_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            fleet = FleetRecords(Path(folder))
            fleet.pipeline("sales")
            counts = Counts(read=100, fed=100, staged=10, published=10)
            fleet.ran("sales", verdict="pass", counts=counts, stop_reason="drained")
            copies(fleet.metastore, runs, "run_id", size, moved=("started_at", "ended_at"))
            with Workspace.open(load_project(Path(folder))) as workspace:
                said("runs", size, "status of the pipeline", lambda: standing(workspace, "sales"))
                said("runs", size, "recording its figures", lambda: fleet.record("sales"))  # noqa: B023
                said("runs", size, "opening and closing a run", lambda: one_run(fleet.metastore))  # noqa: B023


def of_batches() -> None:
    """Published batches of one pipeline in the metastore."""
    for size in (1_000, 10_000, 100_000, 1_000_000):
        with tempfile.TemporaryDirectory() as folder:
            fleet = FleetRecords(Path(folder))
            fleet.pipeline("sales")
            metastore = fleet.metastore
            lease = metastore.acquire("sales", "here", "run-0", TTL)
            metastore.start_run(Run("run-0", "sales"))
            metastore.create_checkpoint(lease, 1, "_drawdown/sales/checkpoint-1", {})
            batch(metastore, lease, 0)
            with metastore._writer.begin() as conn:
                conn.execute(update(batches).values(status="published"))
            copies(metastore, batches, "batch_id", size)
            numbers = iter(range(size + 1, size + 100))
            said("batches", size, "noting a batch", lambda: batch(metastore, lease, next(numbers)))  # noqa: B023
            said(
                "batches",
                size,
                "the batches that are not published",
                lambda: metastore.batches("sales", 1, ("staged", "committed", "passed")),  # noqa: B023
            )


def of_pipelines() -> None:
    """Folders of a project, and rows of the fleet page."""
    for size in (100, 1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            fleet = FleetRecords(Path(folder))
            for number in range(size):
                fleet.pipeline(f"p{number:05d}")
            project = load_project(Path(folder))
            said("pipelines", size, "reading all specs", lambda: list(iter_pipelines(project)))  # noqa: B023
            fleet.record("p00000")
            [row] = fleet.metastore.figures.read()
            content = row.content if isinstance(row.content, dict) else None
            for number in range(1, size):
                name = f"p{number:05d}"
                if content is not None:
                    fleet.metastore.figures.record(name, {**content, "pipeline": name})
                else:
                    fleet.record(name)
            said("pipelines", size, "the state of all, from figures", lambda: list(glance(fleet.metastore)))  # noqa: B023


def of_partitions() -> None:
    """Partitions of a topic: the admin client's answer is made up, the comparison is the preflight's own."""
    for size in (100, 1_000, 10_000):
        parts = {("t", number): 1_000 for number in range(size)}
        found = offsets.TopicOffsets(dict.fromkeys(parts, 0), parts)
        committed = {"t": {str(number): 900 for number in range(size)}}
        said("partitions", size, "comparing offsets", lambda: backlog._compare(committed, found, ()))  # noqa: B023


def copies(metastore: Metastore, table: Any, key: str, size: int, moved: tuple[str, ...] = ()) -> None:
    """Fill a table with older copies of its only row."""
    with metastore._writer.begin() as conn:
        row = dict(conn.execute(select(table)).one()._mapping)
        for first in range(1, size, AT_ONCE):
            rows = []
            for number in range(first, min(first + AT_ONCE, size)):
                times = {name: row[name] - timedelta(seconds=number) for name in moved}
                value = number if isinstance(row[key], int) else f"old-{number}"
                rows.append({**row, **times, key: value})
            if rows:
                conn.execute(insert(table), rows)


def one_run(metastore: Metastore) -> None:
    run = metastore.start_run(Run(f"new-{time.monotonic_ns()}", "sales"))
    metastore.finish_run(run.run_id, "succeeded", counts=Counts(read=1, fed=1))


def batch(metastore: Metastore, lease: Lease, number: int) -> None:
    metastore.note_batch(lease, Batch("sales", 1, number, "run-0", lease.epoch), [], {})


def said(of: str, size: int, what: str, do: Callable[[], Any]) -> None:
    do()
    took = []
    for _ in range(TIMES):
        begun = time.process_time()
        do()
        took.append(time.process_time() - begun)
    print(f"| {of} | {size:,} | {what} | {statistics.median(took) * 1_000:,.1f} ms |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
