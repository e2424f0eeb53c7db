"""Commands of `drawdown` in this process: what they say, or what they are refused with."""

from __future__ import annotations

import shlex

from typer.testing import CliRunner

from drawdown.cli.main import app
from drawdown.errors import DrawdownError


def typed(*words: str) -> str:
    """What a command prints that goes well, given as one line or word by word."""
    done = CliRunner().invoke(app, _words(words))
    assert done.exit_code == 0, f"{words}: {done.output} {done.exception}"
    return done.stdout


def refusal(*words: str) -> DrawdownError:
    done = CliRunner().invoke(app, _words(words))
    assert isinstance(done.exception, DrawdownError), (words, done.output, done.exception)
    return done.exception


def _words(words: tuple[str, ...]) -> list[str]:
    return shlex.split(words[0]) if len(words) == 1 else list(words)
