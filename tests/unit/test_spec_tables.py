"""`format: table` sources find their table by the name that a sink gave it, and read each folder once."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import Pipeline, iter_pipelines, load_pipeline
from tests.support.sandbox import Sandbox

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
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path / "project")


def write(sandbox: Sandbox, name: str, spec: str) -> Path:
    folder = sandbox.root / "include/pipelines" / name
    folder.mkdir()
    (folder / "pipeline.yaml").write_text(spec)
    (folder / "transform.sql").write_text("SELECT 1 AS id")
    (folder / "out.ddl").write_text("id INT")
    return folder


def chain(sandbox: Sandbox, links: int) -> None:
    write(sandbox, "t0", WRITES.replace("{name}", "t0"))
    for link in range(1, links):
        text = READS.replace("out.ddl}", "out.ddl, table: {name}}")
        write(sandbox, f"t{link}", text.replace("{name}", f"t{link}").replace("{table}", f"t{link - 1}"))


def test_however_many_pipelines_read_tables_each_folder_is_read_twice(sandbox: Sandbox) -> None:
    global _opened
    chain(sandbox, 30)
    sys.addaudithook(_on_open)
    _opened = []
    try:
        found = list(iter_pipelines(sandbox.project))
        opened = Counter(path for path in _opened if path.endswith("pipeline.yaml"))
    finally:
        _opened = None
    assert all(isinstance(each, Pipeline) for each in found), found
    assert len(opened) == 30
    assert max(opened.values()) <= 2


def test_a_folder_that_cannot_be_read_keeps_no_other_from_its_table(sandbox: Sandbox) -> None:
    write(sandbox, "writer", WRITES.replace("{name}", "writer"))
    write(sandbox, "reader", READS.replace("{name}", "reader").replace("{table}", "writer"))
    folders = sandbox.root / "include/pipelines"
    (folders / "pipe").mkdir()
    os.mkfifo(folders / "pipe/pipeline.yaml")
    (folders / "elsewhere").mkdir()
    (sandbox.root / "outside.yaml").write_text(WRITES.replace("{name}", "stolen"))
    (folders / "elsewhere/pipeline.yaml").symlink_to(sandbox.root / "outside.yaml")
    (folders / "loop").symlink_to(folders / "loop")
    found = {each.name if isinstance(each, Pipeline) else each.id for each in iter_pipelines(sandbox.project)}
    assert found == {
        "writer",
        "reader",
        "spec.file-missing",
        "spec.path-leaves-folder",
        "spec.no-pipeline",
    }
    assert load_pipeline(sandbox.project, "reader").sources["rows"].path == "tables/writer"
    write(sandbox, "thief", READS.replace("{name}", "thief").replace("{table}", "stolen"))
    with pytest.raises(SpecError, match=r"spec\.unknown-table"):
        load_pipeline(sandbox.project, "thief")
