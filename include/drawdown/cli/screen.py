"""What commands write: tables and JSON on standard output, everything else on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drawdown.errors import DrawdownError

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 200
"""Columns where there is no terminal: a table in a log or a pipe is not cut at 80."""


def out() -> Console:
    """Standard output: results."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH, highlight=False)


def err() -> Console:
    """Standard error: progress, notes and errors."""
    from rich.console import Console

    return Console(
        stderr=True, width=None if sys.stderr.isatty() else _PIPED_WIDTH, highlight=False, soft_wrap=True
    )


def show_error(error: DrawdownError) -> None:
    """An error's four parts, on standard error."""
    from rich.text import Text

    first, *others = error.what.splitlines() or [""]
    lines = [("✗ ", "red"), (error.id, "bold red"), (f"  {first}\n", "")]
    lines += [(f"  {line.strip()}\n", "") for line in others]
    for label, text in (("where", error.where), ("do", error.do)):
        if text:
            indented = text.replace("\n", "\n         ")
            lines += [(f"  {label + ':':<7}", "dim"), (f"{indented}\n", "")]
    err().print(Text.assemble(*lines), end="")


def print_json(value: Any) -> None:
    """One JSON document on standard output; times in ISO 8601, UTC."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """A sign of life while something takes longer; silent without a terminal."""
    console = err()
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


@contextlib.contextmanager
def children_write_to(log: Path) -> Iterator[None]:
    """Let the JVM, and all else this process starts, write to the end of ``log`` and not over the screen.

    Our own ``sys.stdout`` and ``sys.stderr`` go on to the screen; the descriptors 1 and 2, which
    children inherit and native code writes to, go to the file.
    """
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    streams = sys.stdout, sys.stderr
    for stream in streams:
        stream.flush()
    screen = os.dup(1), os.dup(2)
    sys.stdout, sys.stderr = (os.fdopen(os.dup(each), "w", buffering=1) for each in screen)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    try:
        yield
    finally:
        ours = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = streams
        for stream in ours:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        for number, original in enumerate(screen, start=1):
            os.dup2(original, number)
            os.close(original)
