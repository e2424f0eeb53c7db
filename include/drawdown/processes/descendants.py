"""Everything a process ever started: adopted, found and killed (Linux).

A process group or a session is not enough: pyspark.daemon makes its own group, and any process may call
setsid. A "child subreaper" (prctl(2)) becomes the parent of every descendant that loses its parent.
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
    """SIGKILL until none is left: a process may be forked between the search and the kill."""
    while found := descendants():
        _kill(found)
        reap()
    reap()


def kill_marked(name: str, value: str) -> None:
    """SIGKILL until no process is left that was started with this in its environment, whatever its parent.

    Does not wait for them as children, because the caller may have other children.
    """
    while found := _marked(name, value):
        _kill(found)


def _kill(found: list[int]) -> None:
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    time.sleep(0.02)


def _marked(name: str, value: str) -> list[int]:
    """Return the marked processes, without zombies, which have no environment, and other users' processes."""
    import psutil  # imported here: a guard does not need it, and must start in milliseconds

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.environ().get(name) == value:
                found.append(process.pid)
    return found
