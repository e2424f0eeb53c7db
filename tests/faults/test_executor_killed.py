"""An executor of a standalone cluster is killed in a drain: the run goes on, with the rows of one without."""

from __future__ import annotations

import os
import signal
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support import clusters
from tests.support.command_line import CommandLine, drawdown
from tests.support.sandbox import Sandbox, multiset
from tests.support.slow import slow_transform

PROJECT = """
clusters:
  pair: {kind: standalone, workers: {min: 1, max: 2, each: {files: 3}}, worker_memory: 600m}
"""
SPEC = """
sources:
  events:
    format: json
    path: landing/events
    schema: "id INT, k STRING"
    options: {maxFilesPerTrigger: 1}
transform: transform.py
sink: {format: delta, path: tables/counts, schema: out.ddl, mode: update, keys: [k]}
state: {partitions: 2}
cluster: pair
"""
COUNTED = '.groupBy("k").count().withColumnRenamed("count", "n")'
FILES, ROWS = 6, 12


@pytest.mark.fault("F40", "delta")
@pytest.mark.capability("HOST-02")
def test_a_drain_outlives_one_of_its_executors(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project", more=PROJECT)
    sandbox.pipeline(
        "counts",
        SPEC,
        transform_py=slow_transform("events", "k", "string", 0.1, COUNTED),
        out_ddl="k STRING, n BIGINT",
    )
    rows = [[{"id": i, "k": "abcde"[(i + file) % 5]} for i in range(ROWS)] for file in range(FILES + 1)]

    def land(file: int) -> None:
        sandbox.land_json(f"landing/events/{file}.json", rows[file], mtime=file + 1)

    for file in range(FILES):
        land(file)
    with CommandLine(sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        before = clusters.executors(sandbox.root)
        assert len(before) == 2, "six files, three for each worker"
        mapped = [Path(f"/proc/{executor}/maps").read_text() for executor in before]
        assert all("/.drawdown/archive/" in each for each in mapped), "classes are mapped, as the driver's"
        os.kill(before[0], signal.SIGKILL)
        assert command.ended(400) == 0, "".join(command.said)
    clusters.until_nothing_is_left(sandbox.root)
    assert counted(sandbox) == multiset(Counter(str(r["k"]) for file in rows[:FILES] for r in file).items())

    # The next run has a cluster of its own, of another size, and goes on with the state of this one.
    land(FILES)
    assert drawdown(sandbox.root, "run", "counts", timeout=400).returncode == 0
    clusters.until_nothing_is_left(sandbox.root)
    assert counted(sandbox) == multiset(Counter(str(r["k"]) for file in rows for r in file).items())
    with sandbox.metastore() as metastore:
        [second, first] = metastore.runs("counts")
        batches = metastore.batches("counts", 1)
        applications = metastore.applications.since(first.started_at - timedelta(hours=1))[0]
    driver = sandbox.project.clusters["pair"]
    assert all(application.cores > driver.cores for application in applications)
    assert all(application.memory > driver.memory_bytes for application in applications)
    assert (first.state, first.counts.read) == ("succeeded", FILES * ROWS)
    assert (second.state, second.counts.read) == ("succeeded", ROWS)
    assert [batch.counts.read for batch in batches] == [ROWS] * (FILES + 1)


def counted(sandbox: Sandbox) -> object:
    return multiset(sandbox.delta("tables/counts"))
