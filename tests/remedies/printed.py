"""Every command that the library's texts name, read from its source: the command line takes it whole."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drawdown.cli.main import Drawdown
from drawdown.error_registry import LIBRARY, error_entries

_NAMED = re.compile(r"`drawdown ([a-z][^`]*)`")
_BARE = re.compile(r"(?<![`\w./-])drawdown (?=" + "|".join(map(re.escape, Drawdown.places)) + r")\b")
_VALUE = "VALUE"
GROUPS = {
    "watch --trigger VALUE",
    "backfill",
    "quarantine replay",
    "rebuild start",
    "rename",
    "run",
    "upkeep",
    "test",
}
"""Commands by whose names runs are recorded."""
MENTIONS = {"backfill", "rebuild start", "watch"}
"""Commands that texts speak of without asking for one."""


def commands() -> Iterator[tuple[str, str]]:
    """Where each is, and what follows `drawdown`; a value that is put in is called VALUE."""
    for place, text in _texts():
        for command in _NAMED.findall(text):
            yield place, command
    for entry in error_entries().values():
        for command in _NAMED.findall(entry.remedy):
            yield entry.id, command


def without_backticks() -> list[tuple[str, str]]:
    """Texts that name a command which nobody can tell from the words around it, and where each is."""
    return [(place, text) for place, text in _texts() if _BARE.search(text) and not _is_whole(text)]


def _is_whole(text: str) -> bool:
    """Whether it is a command and nothing else, or ends with one: then it can be copied."""
    command = text.strip().partition("   #")[0].rpartition(": ")[2].removeprefix("drawdown ")
    try:
        return len(_BARE.findall(text)) == 1 and (command in GROUPS or wrong_in(command) is None)
    except (KeyError, ValueError):
        return False


def wrong_in(command: str) -> str | None:
    """What the command line would refuse of it; None if it takes all of it."""
    words = shlex.split(command)
    group, path = Drawdown.places[words[0]].load(words[0]), words[:1]
    words = words[1:]
    while inner := getattr(group, "commands", None):
        if words and words[0] == _VALUE:
            return None
        if not words or words[0] not in inner:
            return f"{' '.join(path)} has no {words[0] if words else 'word behind it'}"
        path.append(words[0])
        group, words = inner[words[0]], words[1:]
    return _missing(group, words)


def _missing(command: Any, words: list[str]) -> str | None:
    options = {name: each for each in command.params for name in each.opts if name.startswith("-")}
    given, arguments, rest = set(), 0, iter(words)
    for word in rest:
        if not word.startswith("-"):
            arguments += 1
            continue
        if word not in options:
            return f"it does not take {word}"
        given.add(options[word].name)
        if not options[word].is_flag and next(rest, None) is None:
            return f"{word} has no value"
    needed = [each for each in command.params if each.param_type_name == "argument" and each.required]
    lacking = [each.name for each in needed[arguments:]]
    lacking += [
        each.opts[0]
        for each in command.params
        if each.param_type_name == "option" and each.required and each.name not in given
    ]
    return f"it lacks {', '.join(map(str, lacking))}" if lacking else None


def _texts() -> Iterator[tuple[str, str]]:
    for file, tree in _modules():
        documents = {id(node) for each in ast.walk(tree) for node in _docstring(each)}
        inside = {
            id(part)
            for each in ast.walk(tree)
            if isinstance(each, ast.JoinedStr)
            for part in ast.walk(each)
            if part is not each
        }
        for node in ast.walk(tree):
            if id(node) not in documents | inside and isinstance(node, ast.Constant | ast.JoinedStr):
                text = _text(node)
                if text is not None:
                    yield f"{file}:{node.lineno}", text


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for file in sorted(LIBRARY.rglob("*.py")):
        yield file.relative_to(LIBRARY), ast.parse(file.read_text())


def _docstring(node: ast.AST) -> Iterator[ast.AST]:
    """Texts that stand alone as a statement: of a module, a class, a function, an attribute."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or _VALUE for part in node.values)
    return None
