"""Ctrl-C in the middle of `drawdown run`: stops before the next batch writes, and the next run goes on."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.support.command_line import CommandLine, answer, drawdown
from tests.support.sandbox import Sandbox
from tests.support.slow import slow_transform

SPEC = """
sources:
  rows: {format: json, path: landing/rows, schema: rows.ddl, options: {maxFilesPerTrigger: 1}}
transform: transform.py
sink: {format: delta, path: tables/rows, schema: rows.ddl}
state: {partitions: 2}
"""
FILES = 6


@pytest.mark.full
def test_ctrl_c_ends_cleanly_and_loses_nothing(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline("rows", SPEC, rows_ddl="id INT", transform_py=slow_transform("rows", "id", "int", 1))
    for i in range(FILES):
        sandbox.land_json(f"landing/rows/{i}.json", [{"id": i}], mtime=i + 1)

    with CommandLine(sandbox.root, "run", "rows") as running:
        running.until(lambda line: "batch 1" in line)
        assert running.interrupted() == 130, "".join(running.said)
    said = "".join(running.said)
    assert "stopping before the next batch writes" in said
    assert "rows: asked to stop" in said
    assert "Traceback" not in said
    left = [process for process in psutil.process_iter() if _belongs_to(process, running.pid)]
    _, alive = psutil.wait_procs(left, timeout=15)
    assert alive == [], "the JVM ends with the command"

    done = drawdown(sandbox.root, "run", "rows", "--json")
    assert done.returncode == 0, done.stderr
    [ran] = answer(done.stdout)
    assert 0 < ran["run"]["counts"]["read"] < FILES
    [_, stopped] = answer(drawdown(sandbox.root, "runs", "--json").stdout)
    left = FILES - stopped["counts"]["read"]
    expected = f"asked to stop; left for the next run: rows {left} files"
    assert (stopped["state"], stopped["stop_reason"]) == ("stopped", expected)
    assert [row[0] for row in sandbox.delta("tables/rows")] == list(range(FILES))


def test_ctrl_c_ends_tests_without_a_trace_and_without_a_result(tmp_path: Path) -> None:
    assert drawdown(tmp_path, "init", "sales").returncode == 0
    with CommandLine(tmp_path, "test", "sales", TMPDIR=str(tmp_path)) as running:
        running.until(lambda line: "sales/first" in line)
        assert running.interrupted() == 130, "".join(running.said)
    said = "".join(running.said)
    assert "Traceback" not in said
    assert "✓" not in said
    assert list(tmp_path.glob("drawdown-test-*")) == []


def _belongs_to(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session and process.pid != session
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False
