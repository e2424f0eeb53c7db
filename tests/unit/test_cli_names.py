"""A name that no pipeline has is an error that names the nearest, in every command that takes one."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.metastore import Metastore
from drawdown.metastore.records import Run
from tests.support.typed import refusal, typed

SPEC = """
sources: {events: {format: text, path: landing}}
transform: transform.sql
sink: {format: text, path: out}
"""
COMMANDS = [
    *("runs", "runs --prometheus", "runs --json", "cost", "plan", "run", "watch", "state", "test", "upkeep"),
    *("checkpoint show", "checkpoint verify", "quarantine list", "quarantine show", "rebuild show"),
    *("rebuild start", "backfill --from 2024-01-01 --to 2024-01-02", "validate", "release --why x"),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the pipeline clicks, and runs of sales, whose folder is gone."""
    (tmp_path / "include/pipelines/clicks").mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\nmetastore: sqlite:///m.db\n")
    (tmp_path / "include/pipelines/clicks/pipeline.yaml").write_text(SPEC)
    (tmp_path / "include/pipelines/clicks/transform.sql").write_text("SELECT value FROM events")
    monkeypatch.chdir(tmp_path)
    with Metastore.open(f"sqlite:///{tmp_path}/m.db") as metastore:
        metastore.start_run(Run("r1", "sales"))
        metastore.finish_run("r1", "succeeded")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelt_name_is_refused_with_the_nearest(project: Path, command: str) -> None:
    error = refusal(f"{command} clikcs")
    assert (error.id, error.exit_code) in (("cli.no-pipeline", 2), ("spec.no-pipeline", 2))
    assert "did you mean 'clicks'?" in error.what


def test_a_folder_without_runs_and_runs_without_a_folder_are_no_mistake(project: Path) -> None:
    for name in ("clicks", "sales"):
        assert CliRunner().invoke(app, ["runs", name]).exit_code == 0
    assert "'sales'" in refusal("runs slaes").what


def test_a_removed_pipeline_that_is_misspelt_is_named_too(project: Path) -> None:
    for words in ("remove slaes --yes", "rename slaes clicks"):
        assert "did you mean 'sales'?" in refusal(words).what


def test_a_long_error_is_wrapped_after_its_run_id_at_words(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Metastore.open(f"sqlite:///{project}/m.db") as metastore:
        metastore.start_run(Run("20260131T093000-1a2b3c4d", "sales"))
        error = {"id": "transform.refused", "what": "Spark refused the [transform] of sales: " + "word " * 20}
        metastore.finish_run("20260131T093000-1a2b3c4d", "failed", error=error)
    monkeypatch.setattr("drawdown.cli.screen._PIPED_WIDTH", 80)
    lines = typed("runs sales").splitlines()
    first = next(line.rstrip() for line in lines if line.startswith("20260131T093000-1a2b3c4d"))
    assert first == "20260131T093000-1a2b3c4d transform.refused: Spark refused the [transform] of"
    assert all(len(line.rstrip()) <= 80 for line in lines)
