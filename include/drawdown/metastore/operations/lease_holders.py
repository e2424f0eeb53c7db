"""The process that holds a lease: what of it is noted, and whether it is provably gone (Linux, proc(5)).

Provable is only what this very kernel says of the same process namespace. A host's name is no proof: two
machines may have the same. Gone means with all that works for it: Spark's JVM may write a checkpoint for a
moment after the Python process that started it was killed, so nobody may be left who was started with the
application's scratch folder. Whatever is not known counts as alive: the lease then keeps its time.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, NamedTuple

from drawdown.processes import scratch

_PROC = Path("/proc")
_ENDED = "ZX"
"""States of a process that is dead and was not yet waited for, or is just being removed."""


def this_one() -> dict[str, Any] | None:
    """What another process needs to know to see that this one is gone; None when nobody could."""
    try:
        here, pid = _here(), os.getpid()
        started = _stat(pid).started
    except OSError:
        return None
    if here is None or scratch.works_elsewhere():
        return None
    return {
        **here, "pid": pid, "started": started, "session": os.getsid(0), "scratch": scratch.name_in_use(),
    }  # fmt: skip


def is_gone(noted: dict[str, Any] | None) -> bool:
    """Whether the process of a note, and all that worked for it, is provably gone."""
    if noted is None:
        return False
    try:
        here = _here()
        if here is None or any(noted.get(key) != value for key, value in here.items()):
            return False
        return not _lives(noted["pid"], noted["started"]) and not _works(noted["scratch"], noted["session"])
    except OSError:
        return False


def _here() -> dict[str, Any] | None:
    """Whose word about processes this is: the kernel's, in which namespaces of ids and start times, given to
    whom (rights decide what can be seen); None when /proc is of another namespace than this process."""
    status = dict(line.split(":\t", 1) for line in (_PROC / "self/status").read_text().splitlines())
    if status.get("NSpid") != str(os.getpid()):
        return None
    return {
        "host": socket.gethostname(),
        "boot": (_PROC / "sys/kernel/random/boot_id").read_text().strip(),
        "namespaces": [str((_PROC / "self/ns" / each).readlink()) for each in ("pid", "time", "user")],
        "rights": [status["Uid"], status["CapPrm"]],
    }


def _lives(pid: int, started: int) -> bool:
    try:
        # Not whether /proc/PID is there: a mount with hidepid shows nobody else's.
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    now = _stat(pid)
    return now.started == started and (now.state not in _ENDED or now.threads > 1)


def _works(folder: str | None, session: int) -> bool:
    """Whether a process lives that was started with this scratch folder, or ends and may have been.

    Of processes with the rights of this one: what others were started with cannot be read, and a holder with
    other rights is not looked for.
    """
    if folder is None:
        return False
    # Not "[0-9]*/environ": the glob itself would look at a process that has just ended, and raise.
    for process in _PROC.glob("[0-9]*"):
        try:
            if folder in scratch.names_in((process / "environ").read_bytes()) or _ends(process, session):
                return True
        except PermissionError:
            continue
        except OSError:
            if _ends(process, session):
                return True
    return False


def _ends(process: Path, session: int) -> bool:
    """Whether it is of the session and has no memory any more, but threads that may still write."""
    try:
        now = _stat(int(process.name))
        return now.session == session and now.threads > 1 and not (process / "cmdline").read_bytes()
    except OSError:
        return False


class _Stat(NamedTuple):
    """Of a process; `started` in the kernel's ticks since it started itself."""

    state: str
    session: int
    threads: int
    started: int


def _stat(pid: int) -> _Stat:
    # The name (field 2) may hold spaces and brackets: count from the last bracket.
    fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return _Stat(fields[0], int(fields[3]), int(fields[17]), int(fields[19]))
