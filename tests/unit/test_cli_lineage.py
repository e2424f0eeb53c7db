"""`drawdown lineage`: what feeds what, by path, by topic and by the assets of schedules."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from drawdown.cli.arguments import pipelines_that_begin
from drawdown.cli.main import app
from tests.support.command_line import answer, drawdown

PIPELINES = {
    "clicks": ("{format: text, path: landing/clicks}", "tables/clicks"),
    "counts": ("{format: delta, path: tables/clicks}", "tables/counts"),
    "weekly": ("{format: delta, path: tables/counts}", "tables/weekly"),
    "alone": ("{format: text, path: landing/alone}", "tables/alone"),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/project.yaml").write_text("storage_root: storage\nmetastore: sqlite:///m.db\n")
    for name, (source, table) in PIPELINES.items():
        folder = tmp_path / "include/pipelines" / name
        folder.mkdir(parents=True)
        (folder / "pipeline.yaml").write_text(
            f"sources: {{events: {source}}}\ntransform: transform.sql\n"
            f"sink: {{format: delta, path: {table}, schema: v STRING}}\n"
        )
        (folder / "transform.sql").write_text("SELECT v FROM events")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_pipeline_stands_below_what_feeds_it(project: Path) -> None:
    text = CliRunner().invoke(app, ["lineage"]).stdout
    names = [line.split()[-1] for line in text.splitlines() if line.split()[-1] in PIPELINES]
    assert names == ["alone", "clicks", "counts", "weekly"]
    depth = {name: text[: text.index(name)].rpartition("\n")[2] for name in ("clicks", "counts", "weekly")}
    assert len(depth["clicks"]) < len(depth["counts"]) < len(depth["weekly"])
    assert "← landing/clicks (text)" in text
    assert "→ tables/weekly (delta)" in text


def test_with_a_name_only_what_it_depends_on_or_feeds(project: Path) -> None:
    found = answer(CliRunner().invoke(app, ["lineage", "counts", "--json"]).stdout)
    assert {each["pipeline"]: each["feeds"] for each in found} == {
        "clicks": ["counts"],
        "counts": ["weekly"],
        "weekly": [],
    }


def test_the_shell_completes_names_of_pipelines(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pipelines_that_begin("c") == ["clicks", "counts"]
    monkeypatch.setenv("__C_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "-c runs c")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert drawdown(project).stdout.split() == ["clicks", "counts"]


def test_outside_of_a_project_nothing_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pipelines_that_begin("") == []
