"""The classes of all commands: each is imported when called, and only its answer goes to stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from drawdown.cli.envelope import request
from drawdown.cli.screen import answers_apart
from drawdown.errors import SpecError

_WrongWords: Any = typer.BadParameter.__mro__[2]
"""The class of all that typer says of wrong words: its name and place differ between typer's versions."""


class Command(TyperCommand):
    """A command. Its help is also an answer and is printed before the command is invoked."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        request.command = ctx.command_path.removeprefix(ctx.find_root().command_path).strip()
        request.as_json, request.answered = "--json" in args, False
        with _told_as_all_errors(ctx):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        with _told_as_all_errors(ctx), answers_apart():
            return super().invoke(ctx)


class Group(TyperGroup):
    """Commands of one area; a word that is none of them is an error like all others."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        request.as_json, request.answered = "--json" in args, False
        if not args:
            return super().parse_args(ctx, args)  # shows the help
        with _told_as_all_errors(ctx):
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with _told_as_all_errors(ctx):
            return super().resolve_command(ctx, args)


class Commands(typer.Typer):
    """A group of commands, all of this class."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"cls": Group, "add_completion": False, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        return super().command(name, cls=Command, **settings)


@contextmanager
def _told_as_all_errors(ctx: Any) -> Iterator[None]:
    """What typer says of wrong words, with an id and the way out, instead of typer's frame."""
    try:
        yield
    except _WrongWords as wrong:
        message = " ".join(wrong.format_message().replace("Value error, ", "").split()).removesuffix(".")
        where = ctx.command_path
        raise SpecError("cli.usage", message, where=where, do=f"{where} --help") from None


@dataclass(frozen=True)
class Verb:
    """Where a command is: its module, the function or group in it, and its line in `--help`."""

    module: str
    attribute: str
    help: str

    def load(self, name: str) -> Any:
        """The command, or group of commands."""
        found = getattr(import_module(f"drawdown.cli.commands.{self.module}"), self.attribute)
        if not isinstance(found, typer.Typer):
            alone = Commands()
            alone.command(name)(found)
            found = alone
        command = get_command(found)
        command.name = name
        return command


class LazyGroup(Group):
    """Commands of a table, each imported when it is called: `--help` and completion import none."""

    places: ClassVar[Mapping[str, Verb]]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        listed = {name: Command(name, help=place.help) for name, place in self.places.items()}
        self.commands = {**listed, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        place = self.places.get(name or "")
        return name, command if place is None or name is None else place.load(name), rest
