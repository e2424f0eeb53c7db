"""The class of all commands: while one works, standard output is for its answer alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from drawdown.cli.screen import answers_apart


class Command(TyperCommand):
    """A command; its help, which is an answer, too, has been printed before it is invoked."""

    def invoke(self, ctx: Any) -> Any:
        with answers_apart():
            return super().invoke(ctx)


class Commands(typer.Typer):
    """A group of commands, all of this class."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return super().command(name, cls=Command, **settings)
