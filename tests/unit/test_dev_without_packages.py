"""What runs before there is an environment, or when it is gone, needs the standard library alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["dev.services", "dev.deployment_env", "dev.bootstrap", "dev.progress"])
def test_it_is_imported_without_any_package(module: str) -> None:
    command = [sys.executable, "-S", "-c", f"import {module}"]
    environment = {"PYTHONPATH": f"{ROOT / 'include'}:{ROOT}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
