"""The FIFO that asks the driver to stop when its write end is closed.

Signals do not work: SIGTERM also reaches Spark's JVM, which dies in the middle of a batch. So the process
that started the application (launch/submit_guard.py) keeps a FIFO open for writing. End of file means stop,
and arrives even if that process was killed (SIGKILL). The driver then stops before the next batch writes; if
it has not after the grace time, it ends itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import stat
import threading
import time
from collections.abc import Mapping
from pathlib import Path

STOP_PIPE = "DRAWDOWN_STOP_PIPE"
"""Environment variable: path of the FIFO. Unset in a manual run, which nothing else stops."""

GRACE = "DRAWDOWN_STOP_GRACE"
"""Environment variable: seconds from the request to stop until everything is killed."""

DEFAULT_GRACE = 30.0

EXIT_STOPPED = 143
EXIT_ORPHANED = 137

_LOOK_EVERY = 0.25
_WITHOUT_JVM = 2.0
"""Seconds that the driver gets to report that its JVM is gone, before it ends itself."""


class StopPipe:
    """Sets ``stop_requested`` when the write end is closed; ends this process when stopping takes too long.

    Args:
        fifo: the FIFO to watch; None when no other process can request a stop.
        grace: seconds between the request to stop and ``os._exit``.
    """

    def __init__(self, fifo: Path | None, grace: float = DEFAULT_GRACE) -> None:
        self.stop_requested = threading.Event()
        self._fifo = fifo
        self._grace = grace
        if fifo is not None:
            threading.Thread(
                target=self._watch, args=(fifo, os.getppid()), name="stop-pipe", daemon=True
            ).start()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> StopPipe:
        """Open the pipe that this process was given; call it in the driver's main, before Spark is used."""
        fifo = environment.get(STOP_PIPE)
        return cls(Path(fifo) if fifo else None, stop_grace(environment))

    def _watch(self, fifo: Path, parent: int) -> None:
        """Wait for end of file, and for the JVM, our parent, to disappear."""
        descriptor = _open(fifo)
        released: float | None = None
        while True:
            if released is None and (descriptor is None or _at_end(descriptor)):
                released = time.monotonic()
                self.stop_requested.set()
                _remove(fifo)
            if os.getppid() != parent:
                # Spark is gone and can neither finish a batch nor stop: Py4J calls may hang forever.
                self.stop_requested.set()
                time.sleep(_WITHOUT_JVM)
                os._exit(EXIT_ORPHANED)
            if released is not None and time.monotonic() - released > self._grace:
                os._exit(EXIT_STOPPED)
            if released is None and descriptor is not None:
                select.select([descriptor], [], [], _LOOK_EVERY)
            else:
                time.sleep(_LOOK_EVERY)


def stop_grace(environment: Mapping[str, str] = os.environ) -> float:
    """Return the seconds of grace after a request to stop; the default unless a positive number is set."""
    try:
        seconds = float(environment.get(GRACE, DEFAULT_GRACE))
    except ValueError:
        return DEFAULT_GRACE
    return seconds if 0 < seconds < 3600 else DEFAULT_GRACE


def _open(fifo: Path) -> int | None:
    """Return the FIFO's descriptor; None when the FIFO is gone, which means that its holder is gone."""
    try:
        descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _remove(fifo: Path) -> None:
    """Remove the FIFO and its folder: if front and guard were both killed, no other process does it."""
    with contextlib.suppress(OSError):
        fifo.unlink()
        fifo.parent.rmdir()


def _at_end(descriptor: int) -> bool:
    """Whether no process holds the FIFO open for writing."""
    try:
        return os.read(descriptor, 1) == b""
    except BlockingIOError:
        return False
