"""The drain job that is submitted today, and the one that an earlier `drawdown init` wrote, do the work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drawdown.launch.local import submit_conf
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

SPEC = """
sources:
  events: {format: json, path: landing, schema: events.ddl}
transform: transform.sql
sink: {format: delta, path: tables/events, schema: events.ddl}
state: {partitions: 2}
"""


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param("jobs", marks=pytest.mark.full, id="now"),
        pytest.param("tests/fixtures/older_jobs", id="former"),
    ],
)
def test_a_submitted_job_drains_and_keeps_its_origin(tmp_path: Path, folder: str) -> None:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline("events", SPEC, events_ddl="id BIGINT", transform_sql="SELECT id FROM events")
    sandbox.land_json("landing/a.json", [{"id": 1}, {"id": 2}])
    conf = submit_conf(sandbox.project, sandbox.project.clusters["local"])
    words = [sys.executable, "-m", "drawdown.launch.submit", "--master", conf.pop("spark.master")]
    words += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    words += [str(ROOT / folder / "drain.py"), "--project", str(sandbox.root), "--pipeline", "events"]
    told = subprocess.run(
        [*words, "--origin", '{"dag_id": "d"}'], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    with sandbox.metastore() as metastore:
        [run] = metastore.runs("events", limit=1)
    assert (run.counts.published, run.origin["dag_id"]) == (2, "d")
