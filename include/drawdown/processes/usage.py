"""What a process and its descendants have used of the machine so far, from /proc (Linux, proc(5)).

psutil gives neither the age to the tick (its boot time is in whole seconds) nor the peak of the memory.
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
    """The use of a process tree at one moment.

    Attributes:
        age_us: microseconds since the root process began.
        cpu_us: user and system time, microseconds, to the kernel's tick (10 ms): of every existing process,
            and of ended ones that were waited for.
        peak_bytes: the sum of the greatest memory that each existing process ever held (VmHWM). It is never
            less than the greatest memory of all together, and may be more.
    """

    age_us: int
    cpu_us: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class _Process:
    cpu_ticks: int
    start_ticks: int


def use_of(root: int) -> TreeUse | None:
    """Return what the tree of process ``root``, itself included, has used; None when it is gone."""
    processes, children = _all()
    if root not in processes:
        return None
    tree = _tree(root, children)
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - processes[root].start_ticks / _TICKS
    ticks = sum(processes[pid].cpu_ticks for pid in tree)
    return TreeUse(max(0, int(age * 1e6)), ticks * 1_000_000 // _TICKS, sum(map(_peak_bytes, tree)))


def tree_of(root: int) -> list[int]:
    """Return the ids of process ``root`` and its descendants."""
    return _tree(root, _all()[1])


def _tree(root: int, children: Mapping[int, Sequence[int]]) -> list[int]:
    tree, queue = [root], [root]
    while queue:
        below = children.get(queue.pop(), [])
        tree += below
        queue += below
    return tree


def _all() -> tuple[dict[int, _Process], dict[int, list[int]]]:
    """Return every process by id, and the ids of its children."""
    processes: dict[int, _Process] = {}
    children: dict[int, list[int]] = defaultdict(list)
    # Not "[0-9]*/stat": that glob would read a process that has just ended, and raise.
    for process in _PROC.glob("[0-9]*"):
        try:
            # The name (field 2) may hold spaces and brackets: count from the last bracket.
            fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(process.name)
        # utime, stime, cutime and cstime: children that were waited for count with their parent.
        processes[pid] = _Process(sum(map(int, fields[11:15])), int(fields[19]))
        children[int(fields[1])].append(pid)
    return processes, children


def _peak_bytes(pid: int) -> int:
    try:
        status = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return 0
    # Ended processes and those of the kernel do not have this line.
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0)
