"""How a guard knows that a job has come to its end: a file that the job makes right before.

An exit code does not say it. A transform that calls `os._exit(0)`, or a library that ends the process, leaves
0 and no work done. Standard library only: the guard uses it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ANSWER = "DRAWDOWN_ANSWER"
"""Environment variable: path of the file. Unset: nobody waits for it, as in a run by hand."""

NONE = 1
"""Exit code of an application that ended without it; a retry may do better."""


def note_answer(environment: Mapping[str, str] = os.environ) -> None:
    """Say that what this process ends with is its own answer."""
    if path := environment.get(ANSWER):
        Path(path).touch()
