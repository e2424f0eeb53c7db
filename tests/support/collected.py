"""The marks of all tests there are, as pytest itself collects them, whatever part of them runs now.

In a process of its own, in which this module is a plugin.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_MARK = "DRAWDOWN_TESTS_MARK"


@dataclass(frozen=True)
class Marked:
    """One mark of one test; `full`: only `make test-all` runs it."""

    args: list[str]
    test: str
    full: bool


def collected(mark: str) -> list[Marked]:
    """Every mark of this name."""
    files = [path for path in TESTS.rglob("test_*.py") if f"mark.{mark}" in path.read_text()]
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", mark, "-p", __name__, *files],
        cwd=TESTS.parent,
        env={**os.environ, "PYTEST_ADDOPTS": "", _MARK: mark},
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stdout + listed.stderr
    found = re.findall(r"^marked: (.*)$", listed.stdout, re.MULTILINE)
    return [Marked(**json.loads(line)) for line in found]


def pytest_itemcollected(item: pytest.Item) -> None:
    full = item.get_closest_marker("full") is not None
    for mark in item.iter_markers(os.environ[_MARK]):
        print(f"marked: {json.dumps(asdict(Marked(list(mark.args), item.nodeid, full)))}")
