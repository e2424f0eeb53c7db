"""Run one command, and end it together with everything it ever started.

``python -I guard.py GRACE OWNER|DETACHED COMMAND...`` (standard library only: a guard must start in
milliseconds and stay small). A process group or session is not enough here: Airflow puts tasks into
their own groups and spark-submit runs in its own session. So the guard makes itself the "child
subreaper" (prctl(2)): every descendant that loses its parent becomes its child, and none escapes.

The family ends when the command ends, when the guard is sent SIGTERM, and, with OWNER, when standard
input reaches its end: the owner holds the other end of that pipe, so the kernel closes it however the
owner dies, SIGKILL included. PR_SET_PDEATHSIG alone would not do for owners: it fires when the *thread*
that started the child ends.
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
ASKED_AGAIN = 3.0
"""Seconds between SIGTERM to every descendant and SIGKILL."""

LIBC = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Run the command until one of the three ends; return the command's exit code (128 + n for signal n)."""
    grace, owner, command = float(arguments[0]), arguments[1] == "OWNER", arguments[2:]
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    # As closed.py does, which cannot be imported here: the command's environment may hold Airflow's keys.
    LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    wakeup = wakeup_on(signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_parent
    )
    code = _wait(child.pid, wakeup, owner)
    end_family(child.pid, grace)
    return 128 + signal.SIGTERM if code is None else code


def end_family(first: int, grace: float) -> None:
    """Send SIGTERM to the command, after ``grace`` seconds to all its descendants, then SIGKILL."""
    _send(signal.SIGTERM, [first] if first in descendants() else [])
    if _gone_within(grace):
        return
    _send(signal.SIGTERM, descendants())
    if _gone_within(ASKED_AGAIN):
        return
    while True:
        _send(signal.SIGKILL, descendants())
        if _gone_within(0.2):
            return


def descendants() -> list[int]:
    """Return the process ids below this one, from ``/proc/*/stat``; zombies are reaped, not listed."""
    children: dict[int, list[int]] = defaultdict(list)
    # Not "[0-9]*/stat": that glob would read a process that has just ended, and raise.
    for process in Path("/proc").glob("[0-9]*"):
        try:
            # The name (field 2) may hold spaces and brackets: count from the last bracket.
            state, parent = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
        except (OSError, ValueError):
            continue
        if state != "Z":
            children[int(parent)].append(int(process.name))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def wakeup_on(*signals: int) -> int:
    """Return a descriptor that receives the number of every signal, to wait for all of them in one place."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return read_end


def end_with_parent() -> None:
    """Call in a new child: have the kernel kill it when the thread that forked it ends."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _wait(first: int, wakeup: int, owner: bool) -> int | None:
    """Block until the command ends (return its exit code) or a stop is requested (return None)."""
    selector = selectors.DefaultSelector()
    selector.register(wakeup, selectors.EVENT_READ)
    if owner:
        selector.register(0, selectors.EVENT_READ)
    while True:
        ready = {key.fd for key, _ in selector.select()}
        if 0 in ready and not os.read(0, 4096):
            return None
        if wakeup in ready and {signal.SIGTERM, signal.SIGINT} & set(os.read(wakeup, 4096)):
            return None
        ended = reap()
        if first in ended:
            return ended[first]


def reap() -> dict[int, int]:
    """Collect every child that has ended; return the exit codes (128 + n for signal n) by process id."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def _send(number: int, pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _gone_within(seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        reap()
        if not descendants():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
