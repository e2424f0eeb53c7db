"""What a notebook does: plan, run, look, replay a project from Python; and a pytest of a user's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = """
import json
import drawdown

project = drawdown.Project.load(".")
sales = project.pipeline("sales")
assert sales.preflight().work
plan = sales.plan()
assert not plan.refused and plan.checkpoint is None, plan.verdicts
heard = []

class Hears(drawdown.Watcher):
    def batch(self, pipeline, batch):
        heard.append(batch.batch_id)

run = sales.run(Hears())
assert run.counts.balanced and run.counts.read > 0 and heard == [0], (run, heard)
assert sales.run() is None, "there is nothing new"
assert [each.run_id for each in sales.runs()] == [each.run_id for each in project.runs()] == [run.run_id]
assert sales.plan().checkpoint.generation == 1
(project.spec.root / "include/pipelines/sales/transform.sql").write_text("SELECT nothing FROM nowhere")
assert project.pipeline("sales").plan().refused, "a pipeline is what its folder said when it was asked for"
print("done")
"""
PYTEST = """
import pytest
from drawdown.testing import Bench, cases_of

@pytest.fixture(scope="session")
def bench():
    with Bench(cases_of("."), ".") as bench:
        yield bench

@pytest.mark.parametrize("case", cases_of("."), ids=str)
def test_a_case(case, bench):
    bench.run(case)
"""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.capability("OWN-11")
def test_a_notebook_plans_runs_and_looks(sales: Path) -> None:
    done = python(sales, "-c", NOTEBOOK)
    assert done.stdout.splitlines()[-1:] == ["done"], done.stderr
    assert done.returncode == 0


@pytest.mark.capability("OWN-12")
def test_a_pytest_of_the_user_runs_the_cases_and_shows_what_differs(sales: Path) -> None:
    (sales / "test_cases.py").write_text(PYTEST)
    case = sales / "include/pipelines/sales/tests"
    [first] = [path for path in case.iterdir() if path.is_dir()]
    broken = case / "broken"
    broken.mkdir()
    for file in first.iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    expected = broken / "wave1.expected.csv"
    lines = expected.read_text().splitlines()
    expected.write_text("\n".join(lines[:-1]) + "\n")

    done = python(sales, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_cases.py")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "test_a_case[sales/broken]" in done.stdout
    assert "after wave 1 the output differs" in done.stdout
    assert "+ unexpected: " in done.stdout
    assert not (sales / "storage").exists()
