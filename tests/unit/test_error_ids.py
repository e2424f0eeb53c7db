"""Every error id of the library is named by a test that raises it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from drawdown import errors

ROOT = Path(__file__).parents[2]
LIBRARY, TESTS = ROOT / "include" / "drawdown", ROOT / "tests"
KINDS = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
SHAPE = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")


def test_every_id_is_named_by_a_test() -> None:
    ids = {each for file in LIBRARY.rglob("*.py") for each in ids_of(ast.parse(file.read_text()))}
    assert {"metastore.behind", "rebuild.not-compared", "replay.reach"} <= ids, (
        "ids are found however they are built"
    )
    said = "\n".join(file.read_text() for file in TESTS.rglob("*.py") if file != Path(__file__))
    said = said.replace("\\.", ".")  # as `match=` has them
    named = set(re.findall(r"(?<![\w.-])[a-z]+\.[a-z0-9-]*[a-z0-9](?![\w-])", said))
    assert ids - named == set(), "a test has to bring each of these about"


def ids_of(module: ast.Module) -> Iterator[str]:
    """Of the errors that a module makes: written whole, or as an area with what a function is given."""
    nodes = list(ast.walk(module))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    for call in calls:
        id = _text(_argument(call, "id", 0))
        if _name(call.func) in KINDS and id is not None and SHAPE.fullmatch(id):
            yield id
    for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
        names = [argument.arg for argument in function.args.args]
        for area, parameter in _areas(function):
            if parameter not in names:
                continue
            at = names.index(parameter) - (names[0] == "self")
            for call in calls:
                rest = _text(_argument(call, parameter, at)) if _name(call.func) == function.name else None
                if rest is not None:
                    yield area + rest


def _areas(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Of errors whose id is ``f"area.{parameter}"``."""
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        id = _argument(call, "id", 0)
        if _name(call.func) in KINDS and isinstance(id, ast.JoinedStr) and len(id.values) == 2:
            area, parameter = id.values
            if isinstance(area, ast.Constant) and isinstance(parameter, ast.FormattedValue):
                yield str(area.value), _name(parameter.value) or ""
        elif _name(call.func) in KINDS and isinstance(id, ast.Name):
            yield "", id.id


def _argument(call: ast.Call, name: str, at: int) -> ast.expr | None:
    named = next((each.value for each in call.keywords if each.arg == name), None)
    return named or (call.args[at] if len(call.args) > at else None)


def _name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
