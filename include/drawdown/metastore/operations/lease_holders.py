"""The process that holds a lease: its record, and whether it is provably gone (Linux, proc(5)).

Only this kernel's word about the same process namespace is proof. A host's name is not: two machines may have
the same name. A holder is gone when everything that works for it is gone: Spark's JVM may write a checkpoint
for a moment after the Python process that started it was killed, so no process may be left that was started
with the application's scratch folder. In doubt a holder counts as alive, and its lease keeps its time.
psutil shows neither namespaces, nor rights, nor a start time in the kernel's own ticks.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any, NamedTuple

from drawdown.processes import scratch

_PROC = Path("/proc")
_ENDED = "ZX"
"""States of a process that is dead but was not yet waited for, or is being removed."""


def this_one() -> dict[str, Any] | None:
    """Return what another process needs to see that this one is gone; None when no other could see it."""
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
    """Whether the recorded process, and everything that worked for it, is provably gone."""
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
    """Return what identifies this process's view of processes; None when /proc is of another namespace.

    It is the kernel, the namespaces of ids and start times, and the rights, which decide what can be seen.
    """
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
        # Not by /proc/PID: a mount with hidepid hides other users' processes.
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    now = _stat(pid)
    return now.started == started and (now.state not in _ENDED or now.threads > 1)


def _works(folder: str | None, session: int) -> bool:
    """Whether a process is alive that was started with this scratch folder, or is ending and may have been.

    Only processes with the rights of this one are checked: the environment of others cannot be read, and
    holders with other rights are not looked for.
    """
    if folder is None:
        return False
    # Not "[0-9]*/environ": that glob would read a process that has just ended, and raise.
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
    """Whether a process of the session has freed its memory but has threads that may still write."""
    try:
        now = _stat(int(process.name))
        return now.session == session and now.threads > 1 and not (process / "cmdline").read_bytes()
    except OSError:
        return False


class _Stat(NamedTuple):
    """A process's status; `started` in ticks since the kernel started."""

    state: str
    session: int
    threads: int
    started: int


def _stat(pid: int) -> _Stat:
    # The name (field 2) may contain spaces and brackets: count from the last bracket.
    fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return _Stat(fields[0], int(fields[3]), int(fields[17]), int(fields[19]))
