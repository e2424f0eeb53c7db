"""Output of commands: tables and JSON on standard output, everything else on standard error.

User code can print at any time, even at import and from threads. So while a command works, `sys.stdout` is
standard error, and only `out`, `print_json` and `print_text` write to standard output.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from drawdown.cli.envelope import answer, refusal
from drawdown.cli.output import output_to
from drawdown.errors import DrawdownError
from drawdown.processes.private_folder import private_folder

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 200
"""Width without a terminal: tables in logs and pipes are not cut at 80 columns."""
_answers: TextIO | None = None
"""Standard output while `answers_apart` keeps it; for all threads, as `sys.stdout` is."""


@contextlib.contextmanager
def answers_apart() -> Iterator[None]:
    """Reserve standard output for answers inside the block; other output goes to standard error.

    Descriptor 1, which children inherit and native code writes to, is standard error as well.
    """
    global _answers
    stdout = sys.stdout
    stdout.flush()
    descriptor = os.dup(1)
    _answers, sys.stdout = output_to(stdout), sys.stderr
    os.dup2(2, 1)
    try:
        yield
    finally:
        answers, _answers = _answers, None
        sys.stdout = stdout
        # Output through `sys.__stdout__` is still buffered, and descriptor 1 still redirected.
        stdout.flush()
        os.dup2(descriptor, 1)
        os.close(descriptor)
        if answers is not stdout:
            # All was flushed when it was printed: what cannot be written has been said.
            with contextlib.suppress(OSError, DrawdownError):
                answers.close()


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


def show_refusal(error: DrawdownError) -> None:
    """An error that ends a command, where its answer would be a JSON document: on standard output, once."""
    document = refusal(error.as_dict())
    if document is not None:
        print_text(document)


def show_error(error: DrawdownError) -> None:
    """Print an error's four parts on standard error."""
    from rich.text import Text

    first, *others = error.what.splitlines() or [""]
    lines = [("✗ ", "red"), (error.id, "bold red"), (f"  {first}\n", "")]
    lines += [(f"{line}\n" if line.startswith("  ") else f"  {line}\n", "") for line in others]
    for label, text in (("where", error.where), ("do", error.do)):
        if text:
            indented = text.replace("\n", "\n         ")
            lines += [(f"  {label + ':':<7}", "dim"), (f"{indented}\n", "")]
    err().print(Text.assemble(*lines), end="")


def print_json(value: Any) -> None:
    """Print the answer as one JSON document on standard output, in its envelope."""
    print_text(answer(value))


def print_text(text: str) -> None:
    """Print a text unchanged on standard output."""
    print(text, end="", file=_stdout(), flush=True)


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """Show a spinner during longer work; silent without a terminal."""
    console = err()
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


@contextlib.contextmanager
def children_write_to(log: Path) -> Iterator[None]:
    """Send the output of the JVM and other child processes to the end of ``log`` instead of the screen.

    This process's ``sys.stdout`` and ``sys.stderr`` still write to the screen; descriptors 1 and 2, which
    children inherit and native code uses, go to the file.
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
