"""Parts of a standalone cluster are killed in a drain: an executor, a worker, the master.

Executors and workers are replaced, and rows are those of a run without it; a lost master ends the run.
"""

from __future__ import annotations

import os
import signal
import time
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
ROWS = 12


class Counted:
    """A pipeline that counts slowly by key; each file is a batch."""

    def __init__(self, root: Path, workers: int | str, kind: str = "standalone") -> None:
        self.sandbox = Sandbox(root, more=PROJECT.format(workers=workers))
        self._pace = root / "seconds_a_row"
        self._rows: list[dict[str, object]] = []
        self._files = 0
        self.takes(0.1)
        self.runs_on(kind)

    def takes(self, seconds: float) -> None:
        """How long each row takes from now on."""
        self._pace.write_text(str(seconds))

    def runs_on(self, kind: str) -> None:
        self.sandbox.pipeline(
            "counts",
            f"{SPEC}{kind}\n",
            transform_py=slow_transform("events", "k", "string", self._pace, COUNTED),
            out_ddl="k STRING, n BIGINT",
        )

    def land(self, files: int) -> None:
        for _ in range(files):
            rows: list[dict[str, object]] = [
                {"id": i, "k": "abcde"[(i + self._files) % 5]} for i in range(ROWS)
            ]
            self._files += 1
            self.sandbox.land_json(f"landing/events/{self._files}.json", rows, mtime=self._files)
            self._rows += rows

    def kill(self, daemon: str) -> None:
        """SIGKILL the first daemon of this kind: `Master` or `Worker`."""
        os.kill(clusters.daemons(self.sandbox.root, daemon)[0], signal.SIGKILL)

    def assert_rows_are_those_of_an_undisturbed_run(self) -> None:
        expected = Counter(str(row["k"]) for row in self._rows)
        assert multiset(self.sandbox.delta("tables/counts")) == multiset(expected.items())


@pytest.mark.fault("F40", "delta")
@pytest.mark.capability("HOST-02")
def test_a_drain_outlives_an_executor_and_a_lost_master_is_the_error_of_one_run_only(tmp_path: Path) -> None:
    counted = Counted(tmp_path / "project", "{min: 1, max: 2, each: {files: 3}}")
    counted.land(6)
    an_executor_is_killed(counted)
    counted.assert_rows_are_those_of_an_undisturbed_run()

    # The next run has a cluster of another size, and goes on with the state of the first one.
    counted.land(3)
    counted.takes(0.5)
    the_master_is_killed(counted)

    counted.takes(0)
    counted.runs_on("local")
    done = drawdown(counted.sandbox.root, "run", "counts", timeout=400)
    assert done.returncode == 0, done.stderr
    counted.assert_rows_are_those_of_an_undisturbed_run()
    with counted.sandbox.metastore() as metastore:
        runs = metastore.runs("counts")
        batches = metastore.batches("counts", 1)
        applications = metastore.applications.since(runs[-1].started_at - timedelta(hours=1))[0]
    assert [run.state for run in runs] == ["succeeded", "failed", "succeeded"]
    assert [batch.counts.read for batch in batches] == [ROWS] * 9
    assert runs[-1].counts.read == 6 * ROWS
    driver = counted.sandbox.project.clusters["standalone"]
    clustered = [each for each in applications if each.cluster == "standalone"]
    assert len(clustered) == 2
    assert all(each.cores > driver.cores and each.memory > driver.memory_bytes for each in clustered)


def an_executor_is_killed(counted: Counted) -> None:
    root = counted.sandbox.root
    with CommandLine(root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        executors = clusters.executors(root)
        assert len(executors) == 2, "six files, three for each worker"
        mapped = [Path(f"/proc/{executor}/maps").read_text() for executor in executors]
        assert all("/.drawdown/archive/" in each for each in mapped), "classes are mapped, as the driver's"
        os.kill(executors[0], signal.SIGKILL)
        assert command.ended(400) == 0, "".join(command.said)
    clusters.until_nothing_is_left(root)


def the_master_is_killed(counted: Counted) -> None:
    with CommandLine(counted.sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 6:" in line)
        assert len(clusters.executors(counted.sandbox.root)) == 1
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


@pytest.mark.full
@pytest.mark.capability("HOST-02")
@pytest.mark.parametrize("workers", [2, 1])
def test_a_drain_outlives_one_of_its_workers(tmp_path: Path, workers: int) -> None:
    counted = Counted(tmp_path / "project", workers)
    counted.land(6)
    with CommandLine(counted.sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        counted.kill("Worker")
        assert command.ended(400) == 0, "".join(command.said)
    clusters.until_nothing_is_left(counted.sandbox.root)
    counted.assert_rows_are_those_of_an_undisturbed_run()


@pytest.mark.full
def test_a_terminated_command_whose_jvm_ends_with_it_is_no_bug(tmp_path: Path) -> None:
    """As `kill` of a process group, or a service manager: the signal also reaches Spark's JVM."""
    counted = Counted(tmp_path / "project", workers=1, kind="local")
    counted.land(6)
    with CommandLine(counted.sandbox.root, "run", "counts") as command:
        command.until(lambda line: "counts: batch 1:" in line)
        os.killpg(command.pid, signal.SIGTERM)
        command.ended(120)
    said = "".join(command.said)
    assert "spark.gone" in said, said
    assert "cli.unexpected" not in said
    assert "drain.unexpected" not in said
