"""The library as a wheel, built from this checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def build_wheel(folder: Path) -> Path:
    """Build it in a copy: the build leaves folders beside the sources."""
    copy = folder / "source"
    left_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "include" / "drawdown", copy / "include" / "drawdown", ignore=left_out)
    for name in SOURCES:
        shutil.copy(ROOT / name, copy / name)
    uv("build", "--wheel", "--out-dir", str(folder / "dist"), str(copy))
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel


def uv(*arguments: str) -> None:
    """Run the installer of this environment."""
    subprocess.run([sys.executable, "-m", "uv", "--quiet", *arguments], check=True)
