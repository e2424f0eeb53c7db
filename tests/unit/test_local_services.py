"""Where `make up` has put the broker is where every command looks for it; without it a run fails at once."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from drawdown.cli.doctor.commands import start_broker
from drawdown.local_services import note_services
from drawdown.spec import load_project
from tests.support.command_line import DRAWDOWN, answer

PROJECT = """
storage_root: storage
metastore: sqlite:///metastore.db
brokers: {default: {bootstrap_servers: "${DRAWDOWN_KAFKA:-localhost:9092}"}}
"""
SPEC = """
sources: {events: {format: kafka, schema: "n INT", options: {subscribe: events}}}
transform: transform.sql
sink: {format: delta, path: tables/out, schema: out.ddl}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DRAWDOWN_KAFKA", raising=False)
    folder = tmp_path / "include/pipelines/out"
    folder.mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text(PROJECT)
    (folder / "pipeline.yaml").write_text(SPEC)
    (folder / "out.ddl").write_text("n INT")
    (folder / "transform.sql").write_text("SELECT n FROM events")
    return tmp_path


def _address(root: Path) -> str:
    return load_project(root).brokers["default"].bootstrap_servers


def test_the_project_finds_the_services_that_were_started_for_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _address(root) == "localhost:9092"
    note_services(root, {"DRAWDOWN_KAFKA": "localhost:40123"})
    assert _address(root) == "localhost:40123"
    monkeypatch.setenv("DRAWDOWN_KAFKA", "broker:9093")
    assert _address(root) == "broker:9093", "what is set wins"
    monkeypatch.setenv("DRAWDOWN_KAFKA", "")
    assert _address(root) == "localhost:40123", "as in a shell, empty is unset"
    note_services(root, {})
    assert _address(root) == "localhost:9092"
    (root / ".drawdown/services.json").write_text("[")
    assert _address(root) == "localhost:9092", "half a file is none"


def test_a_broker_that_does_not_answer_ends_a_run_before_spark(root: Path) -> None:
    note_services(root, {"DRAWDOWN_KAFKA": "localhost:1"})
    began = time.monotonic()
    done = subprocess.run(
        [*DRAWDOWN, "run", "out", "--json"], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 5, done.stderr
    assert "spark: starting" not in done.stderr
    [report] = answer(done.stdout)
    assert (report["error"]["id"], report["error"]["where"]) == ("source.broker", "localhost:1")
    assert report["run"]["state"] == "failed", "the run is recorded"
    assert time.monotonic() - began < 30


def test_the_remedy_fits_the_folder(root: Path) -> None:
    assert "make up" not in start_broker(load_project(root))
    (root / "dev").mkdir()
    (root / "dev/services.py").touch()
    assert start_broker(load_project(root)).startswith("make up")
