"""The tables of docs/security.md: each position, and a test behind each cell that says what holds."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.capability("SAFE-11")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
SECTION = PAGE.partition("## Who reaches what\n")[2].partition("\n## ")[0]
POSITIONS = [
    "SQL author", "Python author", "Supplier of data", "Viewer", "Who may trigger", "Admin",
    "Other user of the host", "Neighbour deployment",
]  # fmt: skip


def rows(position: str) -> list[tuple[str, str, str]]:
    """What a position wants, what holds, and its tests."""
    part = SECTION.partition(f"### {position}\n")[2].partition("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [(wants, holds, tests) for wants, holds, tests in cells if wants != "wants"]


def functions_of(file: str) -> set[str]:
    [path] = ROOT.glob(f"tests/**/{file}.py")
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_position_has_its_table() -> None:
    assert re.findall(r"^### (.*)$", SECTION, re.MULTILINE) == POSITIONS
    assert all(rows(position) for position in POSITIONS)


@pytest.mark.parametrize("position", POSITIONS)
def test_each_cell_has_a_test_that_is_there(position: str) -> None:
    for wants, holds, tests in rows(position):
        named = re.findall(r"`(test_\w+)::(test_\w+)`", tests)
        assert named, f"{position}, {wants}: no test"
        assert len(named) == tests.count("::"), tests
        for file, function in named:
            assert function in functions_of(file), f"{file}::{function}"
        assert holds, f"{position}, {wants}"
