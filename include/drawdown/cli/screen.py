"""What commands write: tables and JSON on standard output, everything else on standard error.

Users' code prints where it likes, also at import and from threads; so while a command works, `sys.stdout`
is standard error, and only `out`, `print_json` and `print_text` write to standard output.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from drawdown.errors import DrawdownError
from drawdown.processes.private_folder import private_folder

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 200
"""Columns where there is no terminal: a table in a log or a pipe is not cut at 80."""
_answers: TextIO | None = None
"""Standard output while `answers_apart` keeps it; for all threads, as `sys.stdout` is."""


@contextlib.contextmanager
def answers_apart() -> Iterator[None]:
    """Keep standard output for answers in the block: what else is written there goes to standard error.

    Descriptor 1, which children inherit and native code writes to, is standard error as well.
    """
    global _answers
    stdout = sys.stdout
    stdout.flush()
    descriptor = os.dup(1)
    _answers, sys.stdout = _again(stdout), sys.stderr
    os.dup2(2, 1)
    try:
        yield
    finally:
        answers, _answers = _answers, None
        sys.stdout = stdout
        # What went past `sys.stdout` (`sys.__stdout__`) is still in its buffer, and descriptor 1 still apart.
        stdout.flush()
        os.dup2(descriptor, 1)
        os.close(descriptor)
        if answers is not stdout:
            with contextlib.suppress(BrokenPipeError):
                answers.close()


def _again(stdout: TextIO) -> TextIO:
    """The same file under another descriptor; the stream itself where a test has put one in memory there."""
    try:
        descriptor = os.dup(stdout.fileno())
    except OSError:
        return stdout
    return os.fdopen(descriptor, "w", encoding=stdout.encoding, errors=stdout.errors)


def _stdout() -> TextIO:
    return _answers or sys.stdout


def out() -> Console:
    """Standard output: results."""
    from rich.console import Console

    stdout = _stdout()
    return Console(file=stdout, width=None if stdout.isatty() else _PIPED_WIDTH, highlight=False)


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
    print_text(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def print_text(text: str) -> None:
    """A text as it is, on standard output."""
    print(text, end="", file=_stdout(), flush=True)


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

    Our own ``sys.stdout`` and ``sys.stderr`` go on to the screen as before; the descriptors 1 and 2, which
    children inherit and native code writes to, go to the file.
    """
    private_folder(log.parent)
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
