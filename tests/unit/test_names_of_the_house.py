"""A class name means one thing in the whole library."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "include" / "drawdown"
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
