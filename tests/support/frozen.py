"""A drain in a process of its own that is frozen at a named step, as a machine that sleeps, and wakes up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from drawdown.fault_points import FAULT
from tests.support.sandbox import Sandbox
from tests.support.spark import ROOT

_SECONDS = 120.0


class Frozen:
    """The process; it and its JVM stand still until `wake`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def wake(self) -> tuple[int, str]:
        """Let it go on to its end: exit code, and what it printed."""
        os.killpg(self._process.pid, signal.SIGCONT)
        printed, _ = self._process.communicate(timeout=_SECONDS)
        return self._process.returncode, printed


@contextmanager
def frozen(
    sandbox: Sandbox, name: str, moment: str, command: Sequence[str] = ("run",), more: Sequence[str] = ()
) -> Iterator[Frozen]:
    """`drawdown COMMAND NAME MORE` that sleeps at a moment such as ``before publish.file 2``."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from drawdown.cli.main import main; main()", *command, name, *more],
        cwd=sandbox.root,
        env={**os.environ, FAULT: f"freeze {moment}", "PYTHONPATH": f"{ROOT / 'include'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        until_asleep(process.pid, process.poll)
        yield Frozen(process)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def until_asleep(pid: int, ended: Callable[[], int | None]) -> None:
    """Wait until a process that freezes itself has done so."""
    deadline = time.monotonic() + _SECONDS
    while _state(pid) != "T":
        assert ended() is None, f"it lived through its moment, and ended with {ended()}"
        assert time.monotonic() < deadline, "it did not come to its moment"
        time.sleep(0.05)


def _state(pid: int) -> str:
    """As the kernel says it, behind the name in parentheses: R, S, T for stopped ..."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
