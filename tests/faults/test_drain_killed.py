"""A drain that is SIGKILLed, again and again, ends with the rows of one that never was.

Each drain is the real job in a process of its own, driver and JVM killed together at a moment that its
log names: just after a batch was noted (before or while Spark commits it), or while Spark starts.
"""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from drawdown.machine.archive import driver_conf
from tests.support.spark import ROOT
from tests.support.workspace import Workspace, multiset

SPEC = """
sources:
  events:
    format: csv
    path: landing/events
    schema: events.ddl
    options: {header: true, maxFilesPerTrigger: 1}
    watermark: {column: at, delay: 10 minutes}
transform: transform.sql
sink: {format: delta, path: tables/hourly, schema: out.ddl, publish: PUBLISH}
state: {partitions: 2}
"""
FILES = {
    "events_ddl": "id INT, at TIMESTAMP",
    "out_ddl": "hour TIMESTAMP, n BIGINT",
    "transform_sql": """
        SELECT window.start AS hour, count(*) AS n
        FROM (SELECT window(at, '1 hour') AS window FROM events) GROUP BY window
    """,
    "quality_yaml": "rules: [{name: small, check: id < 90, on_fail: quarantine}]\n",
}
HOURS = 6


def _fill(workspace: Workspace, publish: str) -> None:
    workspace.pipeline("hourly", SPEC.replace("PUBLISH", publish), **FILES)
    for hour in range(HOURS):
        rows = [f"{i},2024-01-01T{hour:02}:{i:02}:00Z" for i in range(5)] + [
            f"99,2024-01-01T{hour:02}:09:00Z"
        ]
        workspace.land(f"landing/events/{hour}.csv", ["id,at", *rows, "broken"], mtime=hour + 1)


def _job(workspace: Workspace, kill_at: str | None) -> int:
    """Run the drain job; SIGKILL its whole session when a line of its log holds `kill_at`."""
    conf = {**driver_conf(ROOT), "spark.ui.enabled": "false"}
    arguments = [
        "--master",
        "local[2]",
        *(part for item in conf.items() for part in ("--conf", "=".join(item))),
    ]
    process = subprocess.Popen(
        [sys.executable, "jobs/drain.py", "--project", str(workspace.root), "--pipeline", "hourly"],
        cwd=ROOT,
        env={
            **os.environ,
            "PYSPARK_SUBMIT_ARGS": shlex.join([*arguments, "pyspark-shell"]),
            "PYTHONPATH": str(ROOT / "include"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if kill_at is not None and kill_at in line:
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def _forget_lease(workspace: Workspace) -> None:
    """What waiting for the lease's time-to-live does, without waiting."""
    with sqlite3.connect(workspace.root / "metastore.db") as store:
        store.execute("DELETE FROM leases")


@pytest.mark.parametrize("publish", ["audited", "direct"])
def test_killed_drains_end_like_one_that_never_was(tmp_path: Path, spark: SparkSession, publish: str) -> None:
    control = Workspace(tmp_path / "control", spark)
    _fill(control, publish)
    control.run("hourly")

    killed = Workspace(tmp_path / "killed")
    _fill(killed, publish)
    for moment in ("starting", "batch 0", "batch 2"):
        assert _job(killed, kill_at=moment) == -signal.SIGKILL
        _forget_lease(killed)
    assert _job(killed, kill_at=None) == 0

    assert multiset(killed.delta("tables/hourly")) == multiset(control.delta("tables/hourly"))
    # The last event is at 05:04: with a delay of 10 minutes the hours up to 04:00 are closed.
    assert len(control.delta("tables/hourly")) == HOURS - 2

    def rejected(workspace: Workspace) -> list[tuple[object, ...]]:
        return sorted(
            (str(row["reasons"]), row["payload"], row["batch_id"]) for row in workspace.quarantined("hourly")
        )

    assert rejected(killed) == rejected(control)
    assert len(rejected(control)) == 2 * HOURS
    with killed.metastore() as metastore:
        states = [run.state for run in metastore.runs("hourly")]
        batches = metastore.batches("hourly", 1)
    assert states.count("crashed") >= 2
    assert states[0] == "succeeded"
    assert sum(batch.counts.read for batch in batches) == HOURS * 7
    assert {batch.status for batch in batches} == {"published"}
    # Delta leaves an empty file behind for a batch without output, dead or alive; VACUUM takes it.
    data_files = (killed.storage / "tables/hourly").glob("*.parquet")
    on_disk = {p.name for p in data_files if pq.read_metadata(p).num_rows}
    with killed.metastore() as metastore:
        noted = metastore.staged_files("hourly", 1, [b.batch_id for b in batches], table="output")
    assert on_disk == {Path(file.path).name for _, file in noted}, "leftovers of dead attempts are swept"
