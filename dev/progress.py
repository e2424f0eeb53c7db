"""Show that a long step is running, and keep the output of its commands in a log. Standard library only."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from drawdown.errors import MachineError
from drawdown.processes.private_folder import private_folder

EVERY = 3.0
"""Seconds between signs of life."""


@contextmanager
def step(text: str, log: Path) -> Iterator[None]:
    """Print ``text`` and, every 3 s, how long it has taken; at the end, print the total time.

    During the step, standard output and error of this process and of all it starts (a JVM too) are
    appended to ``log``, so that each step shows only one line.
    """
    private_folder(log.parent)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    ended = threading.Event()
    started = time.monotonic()
    with os.fdopen(os.dup(1), "w") as screen:
        ticker = threading.Thread(target=_tick, args=(screen, text, started, ended), daemon=True)
        with log.open("ab") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        result = "failed"
        try:
            ticker.start()
            yield
            result = "done"
        finally:
            ended.set()
            ticker.join()
            sys.stdout.flush()
            sys.stderr.flush()
            for standard, original in zip((1, 2), kept, strict=True):
                os.dup2(original, standard)
                os.close(original)
            _line(screen, f"{text}: {result} in {time.monotonic() - started:.1f} s", last=True)


def run(
    arguments: Sequence[str], *, id: str, do: str, log: Path, env: Mapping[str, str] | None = None
) -> None:
    """Run one command of a step; MachineError ``id`` with the end of the log if it fails."""
    start = log.stat().st_size if log.exists() else 0
    try:
        code = subprocess.run(arguments, env=env, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise MachineError(id, f"{arguments[0]} could not be run: {error}", where=str(log), do=do) from error
    if code:
        printed = log.read_bytes()[start:].decode(errors="replace").splitlines()
        said = " | ".join(line.strip() for line in printed[-4:] if line.strip())
        raise MachineError(id, f"{Path(arguments[0]).name} ended with {code}: {said}", where=str(log), do=do)


def _tick(screen: TextIO, text: str, started: float, ended: threading.Event) -> None:
    _line(screen, f"{text} ...")
    while not ended.wait(EVERY):
        _line(screen, f"{text} ... {time.monotonic() - started:.0f} s")


def _line(screen: TextIO, text: str, *, last: bool = False) -> None:
    """On a terminal the line is written over, elsewhere (a CI log) each sign of life is a line."""
    terminal = screen.isatty()
    screen.write(f"\r{text}\x1b[K" if terminal else text)
    screen.write("" if terminal and not last else "\n")
    screen.flush()
