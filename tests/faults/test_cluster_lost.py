"""Daemons of a standalone cluster are killed in a drain: workers are replaced, a lost master ends the run."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support import clusters
from tests.support.command_line import CommandLine, drawdown
from tests.support.sandbox import Sandbox, multiset
from tests.support.slow import slow_transform

PROJECT = """
clusters:
  standalone: {{kind: standalone, workers: {workers}, worker_memory: 600m}}
  local: {{kind: local, master: "local[2]"}}
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
cluster: """
COUNTED = '.groupBy("k").count().withColumnRenamed("count", "n")'
FILES, ROWS = 6, 12


class Counted:
    """A pipeline that counts slowly by key, with six files waiting."""

    def __init__(self, root: Path, workers: int, kind: str = "standalone") -> None:
        self.sandbox = Sandbox(root, more=PROJECT.format(workers=workers))
        self.runs_on(kind)
        self._rows = [{"id": i, "k": "abcde"[(i + file) % 5]} for file in range(FILES) for i in range(ROWS)]
        for file in range(FILES):
            rows = self._rows[file * ROWS : (file + 1) * ROWS]
            self.sandbox.land_json(f"landing/events/{file}.json", rows, mtime=file + 1)

    def runs_on(self, kind: str) -> None:
        self.sandbox.pipeline(
            "counts",
            f"{SPEC}{kind}\n",
            transform_py=slow_transform("events", "k", "string", 0.1, COUNTED),
            out_ddl="k STRING, n BIGINT",
        )

    def kill(self, daemon: str) -> None:
        """SIGKILL the first daemon of this kind: `Master` or `Worker`."""
        os.kill(clusters.daemons(self.sandbox.root, daemon)[0], signal.SIGKILL)

    def assert_rows_are_those_of_an_undisturbed_run(self) -> None:
        expected = Counter(str(row["k"]) for row in self._rows)
        assert multiset(self.sandbox.delta("tables/counts")) == multiset(expected.items())


@pytest.mark.full
@pytest.mark.capability("HOST-02")
@pytest.mark.parametrize("workers", [2, 1])
def test_a_drain_outlives_one_of_its_workers(tmp_path: Path, workers: int) -> None:
    counted = Counted(tmp_path / "project", workers)
    with CommandLine(counted.sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        counted.kill("Worker")
        assert command.ended(400) == 0, "".join(command.said)
    clusters.until_nothing_is_left(counted.sandbox.root)
    counted.assert_rows_are_those_of_an_undisturbed_run()


def test_a_lost_master_fails_the_run_within_a_minute_and_the_next_run_goes_on(tmp_path: Path) -> None:
    counted = Counted(tmp_path / "project", workers=1)
    with CommandLine(counted.sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        counted.kill("Master")
        killed = time.monotonic()
        code = command.ended(400)
        took = time.monotonic() - killed
    said = "".join(command.said)
    assert "cluster.lost" in said, said
    assert "the master ended with exit code 137" in said
    assert "cli.unexpected" not in said
    assert code == 8
    assert took < 60
    clusters.until_nothing_is_left(counted.sandbox.root)
    counted.runs_on("local")
    done = drawdown(counted.sandbox.root, "run", "counts", timeout=400)
    assert done.returncode == 0, done.stderr
    counted.assert_rows_are_those_of_an_undisturbed_run()


@pytest.mark.full
def test_a_terminated_command_whose_jvm_ends_with_it_is_no_bug(tmp_path: Path) -> None:
    """As `kill` of a process group, or a service manager: the signal also reaches Spark's JVM."""
    counted = Counted(tmp_path / "project", workers=1, kind="local")
    with CommandLine(counted.sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        os.killpg(command.pid, signal.SIGTERM)
        command.ended(120)
    said = "".join(command.said)
    assert "spark.gone" in said, said
    assert "cli.unexpected" not in said
    assert "drain.unexpected" not in said
