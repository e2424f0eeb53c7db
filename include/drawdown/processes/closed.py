"""Close a process to the other processes of its user: its environment, memory and descriptors in /proc.

A driver runs the code of pipelines, often as the user whose processes hold Airflow's keys. Linux gives what
is "not dumpable" (prctl(2), proc(5)) to root: nobody else can read it or attach a debugger, and no core file
is written. A fork stays closed; a program that is started (execve(2)) is open until it closes itself, so a
driver, whose environment holds no key, stays readable for those who have to find and end it.

Not closed by this: files that the user can read, what the process says in its command line (``cmdline`` stays
readable), signals.
"""

from __future__ import annotations

import ctypes
import sys

_PR_SET_DUMPABLE = 4


def close_to_others() -> bool:
    """Close this process and what it forks; return whether that is possible here (Linux)."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
