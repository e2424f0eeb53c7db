"""Another clock for programs, since all processes of a machine share its own: by a small library in C."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from tests.support.spark import ROOT

_SOURCE = Path(__file__).with_name("clock.c")
_LIBRARY = ROOT / ".drawdown" / "tests" / "clock.so"


def clock_ahead(seconds: int) -> dict[str, str]:
    """Return the variables with which a program and those that it starts have another clock."""
    return {"LD_PRELOAD": str(_built()), "DRAWDOWN_CLOCK_AHEAD": str(seconds)}


@cache
def _built() -> Path:
    if not _LIBRARY.exists() or _LIBRARY.stat().st_mtime < _SOURCE.stat().st_mtime:
        aside = _LIBRARY.with_name(f"clock.{os.getpid()}")
        _LIBRARY.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(aside), str(_SOURCE)], check=True)
        aside.replace(_LIBRARY)
    return _LIBRARY
