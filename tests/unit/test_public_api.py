"""`import drawdown`: what is public is there, documented, and costs nothing until it is used."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import drawdown

ROOT = Path(__file__).parents[2]


def test_every_public_name_is_there_and_has_a_docstring() -> None:
    for name in drawdown.__all__:
        assert getattr(drawdown, name).__doc__, name
    assert dir(drawdown) == drawdown.__all__
    with pytest.raises(AttributeError, match="no attribute 'Metastore'"):
        drawdown.Metastore  # noqa: B018


@pytest.mark.capability("OWN-11")
def test_the_import_and_a_preflight_need_no_heavy_package(tmp_path: Path) -> None:
    program = (
        "import sys, drawdown; "
        f"print(drawdown.Project.load({str(ROOT)!r}).pipeline('flights').preflight().work); "
        "print([name for name in ('pyspark', 'airflow', 'great_expectations') if name in sys.modules])"
    )
    environment = {
        "PATH": "/usr/bin:/bin",
        "DRAWDOWN_STATE": str(tmp_path),
        "PYTHONPATH": str(ROOT / "include"),
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_page_names_every_public_name() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in drawdown.__all__ if not re.search(rf"`(drawdown\.)?{name}\b", text)] == []


@pytest.mark.parametrize(
    ("call", "id"),
    [
        (lambda root: drawdown.Project.load(root.parent), "spec.no-project"),
        (lambda root: drawdown.Project.load(root).pipeline("flihgts"), "spec.no-pipeline"),
    ],
)
def test_what_is_wrong_is_one_clear_error(call: object, id: str, tmp_path: Path) -> None:
    (tmp_path / "include" / "pipelines" / "flights").mkdir(parents=True)
    (tmp_path / "include" / "project.yaml").write_text("storage_root: s\nmetastore: sqlite:///m.db\n")
    assert callable(call)
    with pytest.raises(drawdown.SpecError) as wrong:
        call(tmp_path)
    assert wrong.value.id == id
    assert wrong.value.do
