"""What is wrong is one sentence on the screen, without words of Java, and early where that is possible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import drawdown
from tests.support.deaths import run_apart
from tests.support.sandbox import Sandbox

SPEC = """
sources:
  rows: {format: json, path: landing/rows, schema: "id INT"}
transform: transform.sql
sink: {format: delta, path: tables/rows, schema: out.ddl}
"""


def test_a_refused_transform_shows_no_stack(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path / "project")
    sandbox.pipeline(
        "rows", SPEC, out_ddl="id INT", transform_sql="SELECT date_add(array(id), 1) AS id FROM rows"
    )
    sandbox.land_json("landing/rows/1.json", [{"id": 1}])
    ended = run_apart(sandbox, "rows")
    assert ended.returncode == 6, ended.stdout
    assert "transform.refused" in ended.stdout
    assert "DATATYPE_MISMATCH" in ended.stdout
    for word in ("Traceback", "org.apache.spark", "Py4J", "stacktrace"):
        assert word not in ended.stdout, ended.stdout


@pytest.mark.parametrize("command", [("run", "rows"), ("run", "rows", "other"), ("plan", "rows")])
def test_a_mistake_that_the_folder_shows_starts_no_spark(tmp_path: Path, command: tuple[str, ...]) -> None:
    sandbox = Sandbox(tmp_path / "project")
    for name in ("rows", "other"):
        sandbox.pipeline(
            name, SPEC.replace("rows", name), out_ddl="id INT", transform_sql=f"SELECT idd FROM {name}"
        )
    sandbox.land_json("landing/rows/1.json", [{"id": 1}])
    ended = drawdown(sandbox.root, *command)
    assert ended.returncode == 2, ended.stderr
    for name in command[1:]:
        assert f"include/pipelines/{name}/transform.sql:1" in ended.stderr
    assert "transform.unknown-column" in ended.stderr
    assert not (sandbox.root / ".drawdown/logs/spark.log").exists()
    runs = json.loads(drawdown(sandbox.root, "runs", "--json").stdout)
    assert runs["data"] == [], "a command that started nothing leaves no record"
