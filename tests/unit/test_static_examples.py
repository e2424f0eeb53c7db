"""Nothing is said of folders that are right: the project's, the examples', those of earlier versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.spec import iter_pipelines, load_project
from drawdown.static_checks.check import static_error

ROOT = Path(__file__).parents[2]
PROJECTS = [ROOT, ROOT / "examples", *sorted((ROOT / "tests" / "fixtures").glob("release_*"))]
# sqlglot costs the DAG processor more than all specs together.
LOADS = """
import sys
from drawdown.spec import load_pipelines, load_project
assert len(load_pipelines(load_project())) > 3
assert "sqlglot" not in sys.modules
"""


@pytest.mark.parametrize("root", PROJECTS, ids=lambda root: root.name)
def test_nothing_is_said_of_a_folder_that_is_right(root: Path) -> None:
    project = load_project(root)
    found = list(iter_pipelines(project))
    assert found
    for pipeline in found:
        assert not isinstance(pipeline, SpecError), pipeline
        assert static_error(project, pipeline) is None


def test_loading_specs_imports_no_sqlglot() -> None:
    subprocess.run([sys.executable, "-c", LOADS], cwd=ROOT, check=True)


VALIDATES = """
import sys
from drawdown.cli.commands.validate import check
from drawdown.spec import load_project
assert set(check(load_project(), []).values()) == {None}
assert not {"great_expectations", "pyspark"} & sys.modules.keys()
"""


def test_validating_the_examples_imports_neither_spark_nor_great_expectations() -> None:
    subprocess.run([sys.executable, "-c", VALIDATES], cwd=ROOT, check=True)
