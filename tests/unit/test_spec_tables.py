"""`format: table` sources find their table by the name that a sink gave it, and read each folder once."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, iter_pipelines, load_pipeline
from tests.support.workspace import Workspace

WRITES = """
sources: {events: {format: json, path: landing/{name}, schema: "id INT"}}
transform: transform.sql
sink: {format: delta, path: tables/{name}, schema: out.ddl, table: {name}}
"""
READS = """
sources: {rows: {format: table, table: {table}}}
transform: transform.sql
sink: {format: delta, path: tables/{name}, schema: out.ddl}
"""
_opened: list[str] | None = None


def _on_open(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(args[0], str):
        _opened.append(args[0])


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "project")


def write(workspace: Workspace, name: str, spec: str) -> Path:
    folder = workspace.root / "include/pipelines" / name
    folder.mkdir()
    (folder / "pipeline.yaml").write_text(spec)
    (folder / "transform.sql").write_text("SELECT 1 AS id")
    (folder / "out.ddl").write_text("id INT")
    return folder


def chain(workspace: Workspace, links: int) -> None:
    write(workspace, "t0", WRITES.replace("{name}", "t0"))
    for link in range(1, links):
        text = READS.replace("out.ddl}", "out.ddl, table: {name}}")
        write(workspace, f"t{link}", text.replace("{name}", f"t{link}").replace("{table}", f"t{link - 1}"))


def test_however_many_pipelines_read_tables_each_folder_is_read_twice(workspace: Workspace) -> None:
    global _opened
    chain(workspace, 30)
    sys.addaudithook(_on_open)
    _opened = []
    try:
        found = list(iter_pipelines(workspace.project))
        opened = Counter(path for path in _opened if path.endswith("pipeline.yaml"))
    finally:
        _opened = None
    assert all(isinstance(each, Pipeline) for each in found), found
    assert len(opened) == 30
    assert max(opened.values()) <= 2


def test_a_folder_that_cannot_be_read_keeps_no_other_from_its_table(workspace: Workspace) -> None:
    write(workspace, "writer", WRITES.replace("{name}", "writer"))
    write(workspace, "reader", READS.replace("{name}", "reader").replace("{table}", "writer"))
    folders = workspace.root / "include/pipelines"
    (folders / "pipe").mkdir()
    os.mkfifo(folders / "pipe/pipeline.yaml")
    (folders / "elsewhere").mkdir()
    (workspace.root / "outside.yaml").write_text(WRITES.replace("{name}", "stolen"))
    (folders / "elsewhere/pipeline.yaml").symlink_to(workspace.root / "outside.yaml")
    (folders / "loop").symlink_to(folders / "loop")
    found = {
        each.name if isinstance(each, Pipeline) else each.id for each in iter_pipelines(workspace.project)
    }
    assert found == {
        "writer",
        "reader",
        "spec.file-missing",
        "spec.path-leaves-folder",
        "spec.no-pipeline",
    }
    assert load_pipeline(workspace.project, "reader").sources["rows"].path == "tables/writer"
    write(workspace, "thief", READS.replace("{name}", "thief").replace("{table}", "stolen"))
    with pytest.raises(SpecError, match=r"spec\.unknown-table"):
        load_pipeline(workspace.project, "thief")
