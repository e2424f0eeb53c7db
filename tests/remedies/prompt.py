"""The command line in this process: the real `main`, with the session of the tests for what needs Spark."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import drawdown.application
import drawdown.launch.local
from drawdown.cli.main import main
from drawdown.errors import DrawdownError

_SHOWN = re.compile(
    r"^(?:✗ (\S+)  |[\d: -]*ERROR \S+ (\S+): )(.*?)(?:\n  where: (.*?))?(?:\n  do:    (.*?))?(?=\n\S|\n*\Z)",
    re.DOTALL | re.MULTILINE,
)
"""An error, as it is shown at the end of a command, or among the lines of its progress."""


@dataclass(frozen=True)
class Said:
    """What a command has answered."""

    words: tuple[str, ...]
    code: int
    text: str

    @property
    def error(self) -> DrawdownError:
        """The last error that is on the screen, in its four parts."""
        [parts] = list(_SHOWN.finditer(self.text))[-1:] or [None]
        assert parts is not None, self.text
        shown, told, *others = ((part or "").replace("\n         ", "\n") for part in parts.groups())
        what, where, do = (" ".join(text.split("\n")) for text in others)
        return DrawdownError(shown or told, what, where=where, do=do)


def typed(folder: Path, words: Sequence[str] | str, spark: SparkSession) -> Said:
    """Type `drawdown WORDS` in a folder; no command answers with a stack trace."""
    words = tuple(shlex.split(words) if isinstance(words, str) else words)
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["drawdown", *words])
        # A session of its own would be this one, and the command would stop it for all tests.
        _share(spark, patch)
        with _screen_to(file.fileno()):
            code = _main()
        file.seek(0)
        text = file.read().decode()
    assert "Traceback" not in text, text
    return Said(words, code, text)


def _main() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _share(spark: SparkSession, patch: pytest.MonkeyPatch) -> None:
    """Commands use this session where they would start one and stop it."""

    @contextmanager
    def local_session(*_: Any) -> Iterator[SparkSession]:
        yield spark

    shared = partial(drawdown.application.SparkApplication, session=spark)
    patch.setattr(drawdown.application, "SparkApplication", shared)
    patch.setattr(drawdown.launch.local, "local_session", local_session)


@contextmanager
def _screen_to(descriptor: int) -> Iterator[None]:
    """Descriptors 1 and 2 and Python's streams lead into a file within the block."""
    streams = sys.stdout, sys.stderr
    for stream in streams:
        stream.flush()
    kept = os.dup(1), os.dup(2)
    for number in (1, 2):
        os.dup2(descriptor, number)
    ours = [open(number, "w", buffering=1, encoding="utf-8", closefd=False) for number in (1, 2)]  # noqa: SIM115
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        for stream in ours:
            stream.close()
        for number, original in enumerate(kept, start=1):
            os.dup2(original, number)
            os.close(original)
