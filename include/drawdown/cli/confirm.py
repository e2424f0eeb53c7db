"""Asks before something is deleted for good; without a terminal `--yes` is needed."""

from __future__ import annotations

import sys

import typer

from drawdown.errors import SpecError


def confirm(question: str, error_id: str, otherwise: str) -> None:
    """Returns when the answer is yes; ends the command when it is no.

    Args:
        otherwise: what to do where nobody can be asked.

    Raises:
        SpecError: with this id, because there is no terminal.
    """
    if not sys.stdin.isatty():
        raise SpecError(
            error_id,
            "this needs confirmation, but there is no terminal: nothing was changed",
            where=question,
            do=otherwise,
        )
    typer.confirm(question, abort=True)
