"""The bars of `drawdown run`: which mark a run ends with."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from drawdown.application.watcher import Report
from drawdown.cli.shown.drain_bars import DrainBars
from drawdown.errors import AuditFailed
from drawdown.plan.preflight import Preflight
from drawdown.spec import load_pipeline, load_project
from drawdown.workspace import Workspace

SPEC = """
sources: {raw: {format: text, path: landing/raw}}
transform: transform.sql
sink: {format: parquet, path: tables/sales}
"""


NEW, NOTHING = Preflight(True, ["new"], {"raw": {"files": 1}}), Preflight(False, [], {})


@pytest.mark.parametrize(
    ("found", "report", "line"),
    [
        (NEW, Report("sales"), "✓ sales · raw"),
        (NOTHING, Report("sales"), "✓ sales: nothing new"),
        (NEW, Report("sales", error=AuditFailed("audit.error", "it raised")), "✗ sales · raw"),
        (NEW, Report("sales", stopped=True), "- sales · raw"),
    ],
)
def test_only_a_run_that_ends_well_has_a_tick(
    tmp_path: Path, found: Preflight, report: Report, line: str
) -> None:
    folder = tmp_path / "include/pipelines/sales"
    folder.mkdir(parents=True)
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\nmetastore: sqlite:///m.db\n")
    (folder / "pipeline.yaml").write_text(SPEC)
    (folder / "transform.sql").write_text("SELECT value FROM raw")
    project, screen = load_project(tmp_path), io.StringIO()

    with Workspace.open(project) as workspace, DrainBars(workspace, Console(file=screen, width=80)) as bars:
        bars.looked(load_pipeline(project, "sales"), found)
        bars.finished(report)

    assert screen.getvalue().startswith(line)
