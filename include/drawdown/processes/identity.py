"""Which process and machine a record is about: numbers and names alone are used again (Linux)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PROC = Path("/proc")


@cache
def this_kernel() -> str:
    """Return what identifies this start of this machine; two machines may have one name."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


@cache
def this_view() -> str:
    """Return what identifies this start of the machine and its process ids, which a container may own."""
    return f"{this_kernel()} {(_PROC / 'self/ns/pid').readlink()}"


def started(pid: int) -> int | None:
    """Return when a process started, in the kernel's ticks; None when there is none of this id."""
    try:
        # The name (field 2) may contain spaces and brackets: count from the last bracket.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return int(fields[19])
