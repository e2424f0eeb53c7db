"""A command that runs in the background under a guard, with a log and a pid file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from drawdown.errors import MachineError

GUARD = Path(__file__).with_name("guard.py")
AFTER_GRACE = 60.0
"""Seconds a guard may take beyond its grace before it is killed itself. Then nothing ends what it guards, so
this is long enough for a busy machine."""


class Background:
    """One background command; its files are ``<folder>/<name>.log`` and ``<folder>/<name>.pid``.

    A detached one outlives its starter (``make up``); any other dies with it, however it dies.
    """

    def __init__(self, name: str, folder: Path, grace: float = 5.0) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self.pid_file = folder / f"{name}.pid"
        self.grace = grace
        self._guard: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], env: Mapping[str, str], *, detached: bool = False) -> None:
        """Start the command. Raises MachineError ``machine.running`` if it already runs."""
        if (pid := self.pid()) is not None:
            raise MachineError(
                "machine.running",
                f"{self.name} runs already as process {pid}",
                where=str(self.pid_file),
                do="stop it first: make down",
            )
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mode = "DETACHED" if detached else "OWNER"
        with self.log.open("ab") as log:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", str(GUARD), str(self.grace), mode, *command],
                env=dict(env),
                stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid_file.write_text(f"{self._guard.pid} {_started_at(self._guard.pid)}\n")

    def pid(self) -> int | None:
        """Return the guard's process id while it is alive, even if another process started it; else None."""
        if self._guard is not None and self._guard.poll() is not None:
            return None
        try:
            pid, started = self.pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        # Process ids are reused: only the process that started at the recorded time is ours.
        return int(pid) if _started_at(int(pid)) == started else None

    def ask_to_stop(self) -> None:
        """Ask the command to end without waiting for it, so that several can end at the same time."""
        if (pid := self.pid()) is not None:
            os.kill(pid, signal.SIGTERM)

    def stop(self) -> None:
        """End the command and all it started, and wait until nothing is left; no error if it does not run."""
        self.ask_to_stop()
        if (pid := self.pid()) is not None:
            deadline = time.monotonic() + self.grace + AFTER_GRACE
            while self.pid() is not None and time.monotonic() < deadline:
                time.sleep(0.05)
            if self.pid() is not None:
                os.kill(pid, signal.SIGKILL)
        if self._guard is not None:
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()
            self._guard = None
        self.pid_file.unlink(missing_ok=True)

    def require_alive(self) -> None:
        """Raise MachineError ``machine.died`` with the log's last lines if the command ended by itself."""
        if self.pid() is None:
            raise MachineError(
                "machine.died",
                f"{self.name} ended while starting: {last_lines(self.log)}",
                where=str(self.log),
                do="read the log named above",
            )


def last_lines(log: Path) -> str:
    """Return the last five non-empty lines of a log, joined by `` | ``, for an error's text."""
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        return " | ".join(lines[-5:]) or "(its log is empty)"
    return "(it wrote no log)"


def _started_at(pid: int) -> str | None:
    """Return the start time in clock ticks since boot (field 22 of proc(5) stat); None if gone or a zombie.

    psutil adds the boot time, which changes when the clock is corrected.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]
