"""Asks before something is deleted permanently; without a terminal `--yes` is needed."""

from __future__ import annotations

import sys

import typer

from drawdown.errors import SpecError


def confirm(question: str, error_id: str, otherwise: str) -> None:
    """Return if the answer is yes; end the command if it is no.

    Args:
        otherwise: the remedy when there is no terminal.

    Raises:
        SpecError: with this id, if there is no terminal.
    """
    if not sys.stdin.isatty():
        raise SpecError(
            error_id,
            "this needs confirmation, but there is no terminal: nothing was changed",
            where=question,
            do=otherwise,
        )
    typer.confirm(question, abort=True)
