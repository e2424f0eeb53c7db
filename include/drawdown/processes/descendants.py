"""Everything a process ever started: adopted, found and killed (Linux).

A process group or a session is not enough: pyspark.daemon makes a group of its own, and anything may
call setsid. A "child subreaper" (prctl(2)) becomes the parent of whatever loses its parent below it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress

from drawdown.processes.guard import PR_SET_CHILD_SUBREAPER, descendants, end_with_parent, reap, wakeup_on

__all__ = [
    "adopt_orphans",
    "descendants",
    "end_with_parent",
    "kill_descendants",
    "kill_marked",
    "reap",
    "wakeup_on",
]


def adopt_orphans() -> None:
    """Become the parent of every process below this one whose own parent ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_descendants() -> None:
    """SIGKILL until none is left: a process may have been forked between looking and killing."""
    while found := descendants():
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)
        reap()
    reap()


def kill_marked(name: str, value: str) -> None:
    """SIGKILL until no process is left that was started with this in its environment, whoever its parent is.

    Collects none of them: the caller may have other children.
    """
    while found := _marked(name, value):
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)


def _marked(name: str, value: str) -> list[int]:
    """Zombies have no environment any more; what belongs to others cannot be read."""
    import psutil  # here: a guard does without it, and starts in milliseconds

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(name) == value:
                found.append(process.pid)
    return found
