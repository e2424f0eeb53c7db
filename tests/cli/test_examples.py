"""The examples prove themselves: every case of every folder, by the command that the README names."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from drawdown.spec import load_pipelines, load_project
from tests.cli.test_commands import drawdown

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("project", [ROOT, ROOT / "examples"], ids=["include/pipelines", "examples"])
def test_every_case_of_every_example_passes(project: Path) -> None:
    done = drawdown(project, "test", "--all", "--json", timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(done.stdout)
    assert {each["pipeline"] for each in results if each["passed"]} == _names(project)


def test_the_page_of_examples_has_a_line_for_each() -> None:
    named = re.findall(r"^\| \[`(\w+)`\]", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(_names(ROOT / "examples"))


def _names(project: Path) -> set[str]:
    return {pipeline.name for pipeline in load_pipelines(load_project(project))}
