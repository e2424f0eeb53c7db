"""A page that is followed from top to bottom: its files written, its commands typed, its outputs compared.

- A block ``sh`` is typed as it stands, in bash; every command has to succeed.
- A block ``text`` right behind it is what it prints, both streams together, in a terminal of 80 columns.
  A line ``...`` stands for any number of lines, ``...`` within a line for any text. How many spaces there
  are and empty lines do not matter.
- Every other block is a file, whose path ends the line above the block: ``Write `path`:``.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.command_line import DRAWDOWN

_BLOCK = re.compile(r"(?P<above>[^\n]*)\n+^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PATH = re.compile(r"`([\w./-]+)`:$")


@dataclass(frozen=True)
class Written:
    """A file that the reader writes, whole."""

    path: str
    text: str


@dataclass(frozen=True)
class Typed:
    """Commands that the reader types, and what they print; None where the page does not show it."""

    commands: str
    output: str | None


def steps(page: str) -> list[Written | Typed]:
    """Return what the page asks for, in its order; a block that is none of the three kinds is an error."""
    found: list[Written | Typed] = []
    for block in _BLOCK.finditer("\n" + page):
        path = _PATH.search(block["above"])
        if block["kind"] == "sh":
            found.append(Typed(block["text"], None))
        elif block["kind"] == "text":
            before = found.pop()
            assert isinstance(before, Typed), f"an output without a command: {block['text']}"
            assert before.output is None, f"a second output: {block['text']}"
            found.append(Typed(before.commands, block["text"]))
        else:
            assert path, f"no path ends the line above this file: {block['text']}"
            found.append(Written(path[1], block["text"]))
    return found


class Reader:
    """Follows a page in an empty folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir(exist_ok=True)
        commands = folder / "bin"
        commands.mkdir(exist_ok=True)
        for name, words in (("drawdown", DRAWDOWN), ("python", [sys.executable])):
            (commands / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (commands / name).chmod(0o755)
        path = os.pathsep.join((str(commands), os.environ["PATH"]))
        self._environment = {**os.environ, "PATH": path, "COLUMNS": "80", "PYTHONUNBUFFERED": "1"}

    def take(self, step: Written | Typed) -> None:
        """Write the file, or type the commands and compare what they print."""
        if isinstance(step, Written):
            file = self.folder / step.path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(step.text)
            return
        printed = self._type(step.commands)
        if step.output is not None:
            assert re.fullmatch(_pattern(step.output), _squeezed(printed)), (
                f"$ {step.commands}printed:\n{printed}\nthe page shows:\n{step.output}"
            )

    def _type(self, commands: str) -> str:
        done = subprocess.run(
            ["bash", "-e"],
            input=commands,
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"$ {commands}{done.stdout}"
        return done.stdout


def _squeezed(text: str) -> str:
    """The text with single spaces and no empty lines; the line below a table's head has any length."""
    lines = (re.sub("─+", "─", " ".join(line.split())) for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


def _pattern(shown: str) -> str:
    lines = _squeezed(shown).splitlines()
    return "".join("(?:.*\n)*?" if line == "..." else f"{_line_pattern(line)}\n" for line in lines)


def _line_pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("...")))
