"""Every command that a page names is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drawdown.cli.main import Drawdown
from tests.unit.test_docs import PAGES

_PLACEHOLDER = re.compile(r"\.\.\.|…|\[|\]|\|")


def commands_of(page: str) -> Iterator[str]:
    """Lines of shell blocks and texts in backticks that begin with `drawdown`."""
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    yield from re.findall(
        r"^(?:[A-Z_]+=\S+ )*(drawdown [a-z-].*)$", blocks.replace("\\\n", " "), re.MULTILINE
    )
    inline = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"(?<!`)`(drawdown [a-z-][^`]*)`", inline)


def wrong_in(line: str) -> str | None:
    """What the command line would not take of a command; None if it takes all."""
    words = shlex.split(line.partition(" #")[0].partition(" || ")[0].partition(" > ")[0])[1:]
    words = [word for word in words if not _PLACEHOLDER.search(word)]
    names = [word.rstrip(",.;:") for word in words]
    if not names or names[0].startswith("-"):
        return None
    if names[0] not in Drawdown.places:
        return f"there is no command {names[0]}"
    command: Any = Drawdown.places[names[0]].load(names[0])
    if inner := getattr(command, "commands", None):
        if len(names) < 2 or names[1].startswith("-") or names[1].isupper():
            return None
        if names[1] not in inner:
            return f"{names[0]} has no {names[1]}"
        command = inner[names[1]]
    taken = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    unknown = [word for word in names if word.startswith("-") and word.partition("=")[0] not in taken]
    return f"{command.name} does not take {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_are_taken(page: Path) -> None:
    assert [(line, wrong) for line in commands_of(page.read_text()) if (wrong := wrong_in(line))] == []


def test_a_command_that_is_not_taken_is_found() -> None:
    assert wrong_in("drawdown frobnicate sales") == "there is no command frobnicate"
    assert wrong_in("drawdown checkpoint frob sales") == "checkpoint has no frob"
    assert wrong_in("drawdown runs sales --frob   # all") == "runs does not take --frob"
    assert wrong_in("drawdown backfill NAME --from … --to …") is None
