"""What tests start in processes of their own is the code that they test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import drawdown


def test_a_sub_process_imports_this_checkout(tmp_path: Path) -> None:
    program = "import drawdown; print(drawdown.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert found.stdout.strip() == drawdown.__file__, "not what set-up has installed, such as a wheel"
