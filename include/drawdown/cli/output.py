"""Standard output of a command, so that a closed or full one is not reported as a bug.

A reader that went away (`| head`) ends the command quietly, a disk that is full with one error.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from drawdown.errors import MachineError


class Output(io.TextIOWrapper):
    """Text to a descriptor of its own; what the system says against it is a MachineError ``cli.output``."""

    def write(self, text: str) -> int:
        with _named():
            return super().write(text)

    def flush(self) -> None:
        with _named():
            super().flush()


def output_to(stream: TextIO) -> TextIO:
    """The same file under another descriptor; the stream itself where a test has put one in memory there."""
    try:
        descriptor = os.dup(stream.fileno())
    except OSError:
        return stream
    binary = os.fdopen(descriptor, "wb")
    # On a terminal each line is shown at once.
    return Output(binary, encoding=stream.encoding, errors=stream.errors, line_buffering=stream.isatty())


def open_standard_streams() -> None:
    """Opens what the caller has closed (`>&-`) on nothing: a file of ours would get its descriptor."""
    for number, mode in enumerate((os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # the lowest that is free: this one
    streams: dict[str, Any] = {"stdin": "r", "stdout": "w", "stderr": "w"}
    for number, (name, mode) in enumerate(streams.items()):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


@contextlib.contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as cause:
        raise MachineError(
            "cli.output",
            f"the answer cannot be written: {cause.strerror or cause}",
            where="standard output",
            do="free space on that disk, or send the output somewhere else; the command itself may have run",
        ) from None
