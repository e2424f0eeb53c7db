"""What Spark refuses is one sentence on the screen, without Java's words for it."""

from __future__ import annotations

from pathlib import Path

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
    sandbox.pipeline("rows", SPEC, out_ddl="id INT", transform_sql="SELECT nothing FROM rows")
    sandbox.land_json("landing/rows/1.json", [{"id": 1}])
    ended = run_apart(sandbox, "rows")
    assert ended.returncode == 6, ended.stdout
    assert "transform.refused" in ended.stdout
    assert "UNRESOLVED_COLUMN" in ended.stdout
    for word in ("Traceback", "org.apache.spark", "Py4J", "stacktrace"):
        assert word not in ended.stdout, ended.stdout
