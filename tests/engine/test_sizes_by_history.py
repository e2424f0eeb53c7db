"""Workers by what earlier runs took: a real cluster of one worker, then one of two, then none."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from drawdown.metastore import Metastore
from drawdown.metastore.operations.applications import Measured, Requested
from drawdown.metastore.records import Counts, Run
from tests.support import clusters
from tests.support.ageing import records_grow_old
from tests.support.command_line import drawdown
from tests.support.sandbox import Sandbox

PROFILE = """
clusters:
  pair:
    kind: standalone
    workers: {min: 1, max: 2, within: 40 seconds, each: {bytes: 100m}}
    worker_memory: 600m
"""
SPEC = """
sources: {events: {format: json, path: landing/events, schema: "id INT"}}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: out.ddl}
cluster: pair
"""


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.capability("HOST-09")
def test_a_large_backlog_gets_more_workers_and_an_empty_one_none(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project", more=PROFILE)
    sandbox.pipeline("events", SPEC, transform_sql="SELECT id FROM events", out_ddl="id INT")

    # Before there is a history, `each` decides; the run notes the bytes of its rows.
    land(sandbox, 0, 100)
    first = run(sandbox)
    assert (first.origin["workers"], cores(sandbox, first)) == (1, 2)
    assert first.origin["workers_why"].startswith("1,500 bytes wait, and `each` is 104,857,600")
    assert "0 of 5 earlier runs" in first.origin["workers_why"]
    with sandbox.metastore() as metastore:
        [batch] = metastore.batches("events", 1)
    noted = batch.by_source["events"]
    assert (noted["read"], noted["files"], noted["bytes"]) == (100, 1, 1_500)

    # Runs of one worker: 10 s, and 10 s for 1,000 rows.
    with sandbox.metastore() as metastore:
        for number in range(1, 8):
            recorded(metastore, number * 1_000, 10 + number * 10)
    land(sandbox, 1, 5_000)
    expected = "2 workers: about 5,000 rows wait, and by 8 earlier runs they take about "
    planned = " ".join(drawdown(sandbox.root, "plan", "events").stdout.split())
    assert f"size of the cluster: {expected}" in planned
    second = run(sandbox)
    assert (second.origin["workers"], cores(sandbox, second)) == (2, 3)
    why = second.origin["workers_why"]
    assert f"2 workers: {why}".startswith(expected)
    assert "if workers share them evenly; 1 would take about" in why
    assert second.counts.read == 5_000
    shown = drawdown(sandbox.root, "runs", "events", "--id", second.run_id).stdout
    assert "workers=2, workers_why=about 5,000 rows" in " ".join(shown.split())

    # Nothing new: no cluster and no run.
    planned = drawdown(sandbox.root, "plan", "events").stdout
    assert "size of the cluster: no workers" in planned
    assert drawdown(sandbox.root, "run", "events").returncode == 0
    with sandbox.metastore() as metastore:
        assert metastore.newest("events").run.run_id == second.run_id  # type: ignore[union-attr]
    assert clusters.folders(sandbox.root) == []


def land(sandbox: Sandbox, number: int, rows: int) -> None:
    """One file whose rows all have the same length: 15 bytes."""
    sandbox.land_json(f"landing/events/{number}.json", [{"id": 100_000 + row} for row in range(rows)])


def run(sandbox: Sandbox) -> Run:
    ended = drawdown(sandbox.root, "run", "events", timeout=400)
    assert ended.returncode == 0, ended.stderr
    clusters.until_nothing_is_left(sandbox.root)
    with sandbox.metastore() as metastore:
        found = metastore.newest("events")
    assert found is not None
    return found.run


def cores(sandbox: Sandbox, run: Run) -> int:
    """Of the driver and the executors that Spark had."""
    assert run.usage is not None
    return int(run.usage["cores"])


def recorded(metastore: Metastore, rows: int, seconds: int) -> None:
    """An earlier run on one worker."""
    name = f"earlier-{rows}"
    asked = Requested("pair", 1, 2**30, None)
    metastore.applications.begin(name, asked, timedelta(seconds=seconds))
    metastore.start_run(Run(name, "events", application=name))
    metastore.finish_run(name, "succeeded", counts=Counts(read=rows, fed=rows))
    metastore.applications.end(name, Measured(start_us=1, executor_cores=1, executor_memory=600 * 2**20))
    records_grow_old(metastore, timedelta(hours=1))
