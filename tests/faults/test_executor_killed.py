"""An executor of a standalone cluster is killed in a drain: the run goes on, with the rows of one without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.slow import slow_transform
from tests.support.spark import ROOT
from tests.support.standalone import StandaloneCluster
from tests.support.workspace import Workspace, multiset

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
"""
COUNTED = '.groupBy("k").count().withColumnRenamed("count", "n")'
FILES, ROWS = 6, 12


@pytest.mark.fault("F40", "delta")
def test_a_drain_outlives_one_of_its_executors(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "project")
    workspace.pipeline(
        "counts",
        SPEC,
        transform_py=slow_transform("events", "k", "string", 0.1, COUNTED),
        out_ddl="k STRING, n BIGINT",
    )
    rows = [[{"id": i, "k": "abcde"[(i + file) % 5]} for i in range(ROWS)] for file in range(FILES)]
    for file, landed in enumerate(rows):
        workspace.land_json(f"landing/events/{file}.json", landed, mtime=file + 1)

    with StandaloneCluster(tmp_path / "cluster") as cluster:
        log = tmp_path / "job.log"
        with log.open("wb") as stream:
            job = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.support.clustered_job"),
                    *(str(workspace.root), "counts", cluster.master),
                ],
                cwd=ROOT,
                env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            deadline = time.monotonic() + 400
            while "counts: batch 1:" not in log.read_text():
                assert job.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            before = cluster.executors()
            assert len(before) == 2
            os.kill(before[0], signal.SIGKILL)
            assert job.wait(400) == 0, log.read_text()
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()

    counted = Counter(str(row["k"]) for landed in rows for row in landed)
    assert multiset(workspace.delta("tables/counts")) == multiset(counted.items())
    with workspace.metastore() as metastore:
        [run] = metastore.runs("counts")
        batches = metastore.batches("counts", 1)
    assert (run.state, run.counts.read) == ("succeeded", FILES * ROWS)
    assert [batch.counts.read for batch in batches] == [ROWS] * FILES
