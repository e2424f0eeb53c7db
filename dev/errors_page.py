"""docs/errors.md: every error id of the library, taken from where it is raised. ``python -m dev.errors_page``

Ids are found however they are built: written whole, or as an area with what a function is given.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from drawdown import errors

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "include" / "drawdown"
PAGE = ROOT / "docs" / "errors.md"
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.DrawdownError)
}
_SHAPE = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")
_INTRODUCTION = """\
# Errors

Made by `python -m dev.errors_page` from the library's code; do not edit. Every error has an id, says what was
found and where, and names the next step. Below, … stands for what differs from case to case. The exit code is
that of the command and of the driver; a retry can help where it says so.
"""


@dataclass(frozen=True)
class Raised:
    """One place of the library that raises an error.

    Attributes:
        id: ``area.what``.
        kind: name of the class.
        what, do: sentences, with … for what differs; empty where somebody else gives them.
    """

    id: str
    kind: str
    what: str
    do: str


def raised() -> list[Raised]:
    """Every error of the library, by id; an id that is raised in several places once for each."""
    modules = [ast.parse(file.read_text()) for file in LIBRARY.rglob("*.py")]
    constants = {name: id for module in modules for name, id in _constants(module)}
    found = {each for module in modules for each in raised_in(module, constants)}
    return sorted(found, key=lambda each: (each.id, each.what, each.do))


def _constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Ids that stand at the top of a module under a name."""
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            id = _text(node.value)
            if id is not None and _SHAPE.fullmatch(id):
                yield node.targets[0].id, id


def raised_in(module: ast.Module, constants: Mapping[str, str]) -> Iterator[Raised]:
    """The errors that a module makes.

    Args:
        constants: ids of the library by the name they are given.
    """
    nodes = list(ast.walk(module))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in calls:
        given, kind = _argument(call, "id", 0), _name(call.func)
        id = constants.get(given.id) if isinstance(given, ast.Name) else _text(given)
        if kind in KINDS and id is not None and _SHAPE.fullmatch(id):
            yield _of(call, id)
    for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
        names = [argument.arg for argument in function.args.args]
        for area, parameter, error in _areas(function):
            if parameter not in names:
                continue
            at = names.index(parameter) - (names[0] == "self")
            for call in calls:
                rest = _text(_argument(call, parameter, at)) if _name(call.func) == function.name else None
                if rest is not None:
                    yield _of(error, area + rest)


def page() -> str:
    """The page's text."""
    lines = [_INTRODUCTION]
    area = ""
    for id, places in _by_id(raised()).items():
        if id.split(".")[0] != area:
            area = id.split(".")[0]
            lines += [
                f"\n## {area}\n",
                "| id | exit code | what was found | what to do |",
                "|---|---|---|---|",
            ]
        code = " or ".join(dict.fromkeys(_code(KINDS[each.kind]) for each in places))
        what, do = (
            _cell(dict.fromkeys(text for each in places if (text := getattr(each, part))))
            for part in ("what", "do")
        )
        lines.append(f"| `{id}` | {code} | {what} | {do} |")
    return "\n".join(lines) + "\n"


def _code(kind: type[errors.DrawdownError]) -> str:
    return f"{kind.exit_code}{', retry' if kind.transient else ''}"


def _by_id(found: list[Raised]) -> dict[str, list[Raised]]:
    return {id: [each for each in found if each.id == id] for id in dict.fromkeys(each.id for each in found)}


def _cell(texts: dict[str, None]) -> str:
    return "<br>".join(text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ") for text in texts)


def _of(call: ast.Call, id: str) -> Raised:
    what, do = _argument(call, "what", 1), _argument(call, "do", -1)
    return Raised(id, str(_name(call.func)), _sentence(what), _sentence(do))


def _areas(function: ast.FunctionDef) -> Iterator[tuple[str, str, ast.Call]]:
    """Of errors whose id is ``f"area.{parameter}"``."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        id = _argument(call, "id", 0)
        if _name(call.func) in KINDS and isinstance(id, ast.JoinedStr) and len(id.values) == 2:
            area, parameter = id.values
            if isinstance(area, ast.Constant) and isinstance(parameter, ast.FormattedValue):
                yield str(area.value), _name(parameter.value) or "", call
        elif _name(call.func) in KINDS and isinstance(id, ast.Name):
            yield "", id.id, call


def _argument(call: ast.Call, name: str, at: int) -> ast.expr | None:
    named = next((each.value for each in call.keywords if each.arg == name), None)
    return named or (call.args[at] if 0 <= at < len(call.args) else None)


def _name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _sentence(node: ast.expr | None) -> str:
    """The text of a literal, with … for what is put in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _sentence(node.left) + _sentence(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_sentence(node.body)} / {_sentence(node.orelse)}"
    return _text(node) or ("" if node is None else "…")


if __name__ == "__main__":
    PAGE.write_text(page())
