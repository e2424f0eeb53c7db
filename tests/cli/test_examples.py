"""The examples prove themselves: every case of every folder, by the command that the README names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from drawdown.spec import load_pipelines, load_project
from tests.cli.test_commands import drawdown
from tests.support.command_line import answer

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "project",
    [
        pytest.param(ROOT, id="include/pipelines", marks=pytest.mark.full),
        pytest.param(ROOT / "examples", id="examples", marks=pytest.mark.full),
    ],
)
def test_every_case_of_every_example_passes(project: Path) -> None:
    assert _passed(project, "--all") == _names(project)


def test_the_page_of_examples_has_a_line_for_each() -> None:
    named = re.findall(r"^\| \[`(\w+)`\]", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(_names(ROOT / "examples"))


def _passed(project: Path, *which: str) -> set[str]:
    """The pipelines all of whose cases pass; a case that does not fails the test with its output."""
    done = drawdown(project, "test", *which, "--json", timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    return {each["pipeline"] for each in answer(done.stdout) if each["passed"]}


def _names(project: Path) -> set[str]:
    return {pipeline.name for pipeline in load_pipelines(load_project(project))}
