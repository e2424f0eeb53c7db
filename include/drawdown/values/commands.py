"""Commands that remedies name, written so that a shell takes them as they are printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

_SHOWN = 3


def rebuild(pipeline: str) -> str:
    """Return the two commands, in backticks, that compute an output again and swap it in."""
    return f"`drawdown rebuild start {pipeline}`, then `drawdown rebuild approve {pipeline} --why ...`"


def rebuild_again(pipeline: str, first: str = "") -> str:
    """Return the commands, in backticks, that give up a rebuild and begin another.

    Args:
        first: what is done between them.
    """
    then = f", {first}, and" if first else ", then"
    return f"`drawdown rebuild discard {pipeline} --why ...`{then} `drawdown rebuild start {pipeline}`"


def set_aside_file(pipeline: str, path: str, *, back: bool = False) -> str:
    """Return the command, in backticks, that sets a source's file aside, or has it read again."""
    return f"`drawdown quarantine file {pipeline} {shlex.quote(path)}{' --take-back' * back} --why ...`"


def set_aside_files(pipeline: str, paths: Sequence[str], then: str) -> str:
    """Return a command per file, with what each does; of many files only the first are named."""
    shown, more = sorted(paths)[:_SHOWN], len(paths) > _SHOWN
    commands = ", ".join(set_aside_file(pipeline, path) for path in shown)
    return f"{commands}{' and so on, for each,' * more} {then}"
