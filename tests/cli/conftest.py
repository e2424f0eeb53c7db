"""Fixtures of the tier that types commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import drawdown


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """An empty folder in which `drawdown init sales` was run."""
    assert drawdown(tmp_path, "init", "sales").returncode == 0
    return tmp_path
