"""A class name means one thing in the whole library, a test file is one file, and units need no Spark."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "include" / "drawdown"
TESTS = Path(__file__).parents[1]
# What users import as drawdown.Project and drawdown.Pipeline wraps what the spec calls so.
PUBLIC = {("Project", "api.py"), ("Pipeline", "api.py")}


def test_no_class_name_is_used_twice() -> None:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(LIBRARY.rglob("*.py")):
        name = str(path.relative_to(LIBRARY))
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and (node.name, name) not in PUBLIC:
                found[node.name].append(name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_the_map_of_contributing_has_every_room_and_no_other() -> None:
    text = (LIBRARY.parents[1] / "CONTRIBUTING.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name.split("/")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}
    there = {path.name for path in LIBRARY.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert named == there - {"__pycache__"}


def test_no_two_test_files_outside_packages_have_one_name() -> None:
    """pytest collects the first of them only, and ends with an error."""
    found = Counter(
        path.name for path in TESTS.rglob("test_*.py") if not (path.parent / "__init__.py").exists()
    )
    assert [name for name, files in found.items() if files > 1] == []


def test_no_unit_test_imports_spark() -> None:
    found = [
        path.name
        for path in sorted((TESTS / "unit").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        if any(name.split(".")[0] == "pyspark" for name in _imported(node))
    ]
    assert found == []


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
