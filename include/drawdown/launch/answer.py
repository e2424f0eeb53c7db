"""The file by which a job tells its guard that it has finished, written right before it ends.

An exit code is not enough: a transform that calls `os._exit(0)`, or a library that ends the process, leaves
exit code 0 with the work not done. Standard library only, because the guard uses it.
"""

from __future__ import annotations

import os
from pathlib import Path

ANSWER = "DRAWDOWN_ANSWER"
"""Environment variable: path of the file. Unset: nothing waits for it, for example in a manual run."""

NONE = 1
"""Exit code of an application that ended without the file; a retry may succeed."""


def note_answer() -> None:
    """Record that the exit code of this process is the job's own result."""
    if path := os.environ.get(ANSWER):
        Path(path).touch()
