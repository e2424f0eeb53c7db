"""Every folder with tests is one that `make test` collects."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_folder_with_tests_is_collected() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    collected = set(settings["tool"]["pytest"]["ini_options"]["testpaths"])
    folders = {
        f"tests/{path.relative_to(ROOT / 'tests').parts[0]}" for path in ROOT.glob("tests/*/**/test_*.py")
    }
    # Projects that tests copy have tests of their own in them.
    assert folders - {"tests/fixtures", "tests/benchmarks"} == collected
