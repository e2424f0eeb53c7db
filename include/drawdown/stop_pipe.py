"""How the driver learns that it should stop: a FIFO whose other end nobody holds any more.

Signals do not do: SIGTERM reaches Spark's JVM as well, which dies in the middle of a batch. So whoever
started the application (launch/submit_guard.py) keeps a FIFO open for writing. Its end of file means
stop, and comes however the holder ended, SIGKILL included. The driver then stops before the next batch
writes; one that has not after the grace time ends itself.
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

LEASH = "DRAWDOWN_LEASH"
"""Environment variable: path of the FIFO. Unset: nobody can pull, as in a run by hand."""

GRACE = "DRAWDOWN_STOP_GRACE"
"""Environment variable: seconds from being asked to stop until everything is killed."""

DEFAULT_GRACE = 30.0

EXIT_STOPPED = 143
EXIT_ORPHANED = 137

_LOOK_EVERY = 0.25
_WITHOUT_JVM = 2.0
"""Seconds the driver has to report a JVM that is gone, before it is gone itself."""


class StopPipe:
    """Sets ``stop_requested`` when the holder lets go; ends this process when stopping takes too long.

    Args:
        fifo: what to watch; None for a leash that nobody holds.
        grace: seconds between being asked to stop and ``os._exit``.
    """

    def __init__(self, fifo: Path | None, grace: float = DEFAULT_GRACE) -> None:
        self.stop_requested = threading.Event()
        self._fifo = fifo
        self._grace = grace
        if fifo is not None:
            threading.Thread(target=self._watch, args=(fifo, os.getppid()), name="leash", daemon=True).start()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> StopPipe:
        """The leash this process was started on; call it in the driver's main, before Spark is used."""
        fifo = environment.get(LEASH)
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
    """Seconds of grace after being asked to stop; the default for anything that is no positive number."""
    try:
        seconds = float(environment.get(GRACE, DEFAULT_GRACE))
    except ValueError:
        return DEFAULT_GRACE
    return seconds if 0 < seconds < 3600 else DEFAULT_GRACE


def _open(fifo: Path) -> int | None:
    """The FIFO's descriptor; None when it is gone, which means the holder is."""
    try:
        descriptor = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _remove(fifo: Path) -> None:
    """Front and guard may both have been killed: then nobody else is left to tidy up."""
    with contextlib.suppress(OSError):
        fifo.unlink()
        fifo.parent.rmdir()


def _at_end(descriptor: int) -> bool:
    """Whether no process holds the FIFO open for writing."""
    try:
        return os.read(descriptor, 1) == b""
    except BlockingIOError:
        return False
