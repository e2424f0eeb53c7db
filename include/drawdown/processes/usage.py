"""What a process and all below it have used of the machine so far, read from /proc (Linux, proc(5)).

psutil gives neither the age to the tick (its boot time is of whole seconds) nor the peak of the memory.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class TreeUse:
    """Read at one moment.

    Attributes:
        age_us: microseconds since the topmost process began.
        cpu_us: user and system time, microseconds, to the kernel's tick (10 ms): of every process that is
            there, and of those that have ended and were waited for.
        peak_bytes: the most memory that each process there has ever held at once (VmHWM), added up. So it
            is never less than what all held together, and may be more.
    """

    age_us: int
    cpu_us: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class _Process:
    cpu_ticks: int
    start_ticks: int


def use_of(root: int) -> TreeUse | None:
    """What the tree below process ``root``, itself included, has used; None when it is gone."""
    processes, children = _all()
    if root not in processes:
        return None
    tree = _tree(root, children)
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - processes[root].start_ticks / _TICKS
    ticks = sum(processes[pid].cpu_ticks for pid in tree)
    return TreeUse(max(0, int(age * 1e6)), ticks * 1_000_000 // _TICKS, sum(map(_peak_bytes, tree)))


def tree_of(root: int) -> list[int]:
    """Ids of process ``root`` and of all below it."""
    return _tree(root, _all()[1])


def _tree(root: int, children: Mapping[int, Sequence[int]]) -> list[int]:
    tree, queue = [root], [root]
    while queue:
        below = children.get(queue.pop(), [])
        tree += below
        queue += below
    return tree


def _all() -> tuple[dict[int, _Process], dict[int, list[int]]]:
    """Every process by id, and the ids of its children."""
    processes: dict[int, _Process] = {}
    children: dict[int, list[int]] = defaultdict(list)
    # Not "[0-9]*/stat": the glob itself would look at a process that has just ended, and raise.
    for process in _PROC.glob("[0-9]*"):
        try:
            # The name (field 2) may hold spaces and brackets: count from the last bracket.
            fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(process.name)
        # utime, stime, cutime and cstime: what was waited for counts with its parent.
        processes[pid] = _Process(sum(map(int, fields[11:15])), int(fields[19]))
        children[int(fields[1])].append(pid)
    return processes, children


def _peak_bytes(pid: int) -> int:
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    # A process that has ended, and one of the kernel, has no such line.
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
