"""Code of a pipeline that ends Spark or the process: one error that names the pipeline, and no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_commands import drawdown
from tests.support.command_line import answer
from tests.support.dag_project import DagProject

ENDS = {
    "at_once": ("import os; os._exit(0)", "SystemExit: 0"),
    "session": ("sources['events'].sparkSession.stop()", "RuntimeError: all pipelines of the application"),
    "context": ("sources['events'].sparkSession.sparkContext.stop()", "RuntimeError: all pipelines"),
}


@pytest.mark.capability("OWN-05")
def test_each_fails_its_own_pipeline_with_one_error_and_the_last_is_drained(tmp_path: Path) -> None:
    project = DagProject(tmp_path / "project")
    for name, (code, _) in ENDS.items():
        folder = project.pipeline(name, "group: several")
        (folder / "transform.py").write_text(f"def transform(sources):\n    {code}\n")
        (folder / "transform.sql").unlink()
        spec = (folder / "pipeline.yaml").read_text()
        (folder / "pipeline.yaml").write_text(spec.replace("transform.sql", "transform.py"))
        project.land(name, 1)
    project.pipeline("works", "group: several")
    project.land("works", 1)
    done = drawdown(project.root, "run", "--all", "--json")
    assert done.returncode == 6, done.stdout + done.stderr
    reports = {each["pipeline"]: each for each in answer(done.stdout)}
    for name, (_, says) in ENDS.items():
        error = reports[name]["error"]
        assert (error["id"], says in error["what"]) == ("transform.raised", True), error
        assert error["where"].endswith("transform.py:2")
        assert reports[name]["run"]["state"] == "failed"
    assert reports["works"]["run"]["state"] == "succeeded"
    assert project.ids("works") == [1]
    assert "Traceback" not in done.stderr
    assert "at org.apache" not in done.stderr
