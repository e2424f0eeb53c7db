"""jobs/*.py that an earlier `drawdown init` has written find what they import, at its former place."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

OLDER = sorted((Path(__file__).parents[1] / "fixtures" / "older_jobs").glob("*.py"))


@pytest.mark.parametrize("job", OLDER, ids=lambda path: path.name)
def test_what_it_imports_is_there(job: Path) -> None:
    names = [
        (node.module, each.name)
        for node in ast.walk(ast.parse(job.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("drawdown")
        for each in node.names
    ]
    assert len(names) >= 7
    for module, name in names:
        assert hasattr(importlib.import_module(str(module)), name), f"{module}.{name}"
