"""Where the library raises errors and reports findings, with their ids, read from its source.

An id stands in the call itself, or a function takes it, or a part of it, from its callers. `_BUILT` has the
few ids that are put together from a value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from drawdown import errors
from drawdown.plan_verdicts import Level

LIBRARY = Path(__file__).resolve().parents[1] / "include" / "drawdown"
CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.DrawdownError)
}
_SHAPE = re.compile(r"[a-z]+\.[a-z0-9]+(-[a-z0-9]+)*")
_BUILT = {
    "f'audit.{verdict.outcome}'": ("audit.fail", "audit.error"),
    "f'audit.{said.outcome}'": ("audit.fail", "audit.error"),
    "f'spec.{kind}'": ("spec.wrong-type", "spec.wrong-value"),  # the rest comes from `problem`
    "f'spec.group-{key}'": ("spec.group-schedule", "spec.group-airflow", "spec.group-cluster"),
    "f'{kind}.refused'": ("rule.refused", "expectation.refused"),
    "f'{kind}.subquery'": ("rule.subquery", "expectation.subquery"),
    "f'trigger.{kind}'": ("trigger.continuous", "trigger.real-time", "trigger.asynchronous"),
    "f'slice.{kind}'": ("slice.waits", "slice.overdue"),
}
"""Ids that no literal shows, by the expression that builds them."""
_PASSED_ON = {"first.id", "error.id", "case.id", "collision.id", "refusal.id"}
"""Ids of errors and findings that were made elsewhere."""


@dataclass(frozen=True)
class Use:
    """One place that raises an error or reports a finding.

    Attributes:
        id: ``area.what``.
        form: name of the error's class, or a level of a verdict, or ``notice`` of a run record.
        file: its module, below the library's folder.
    """

    id: str
    form: str
    file: Path


@dataclass(frozen=True)
class _Taker:
    """A callable that takes an id: in parameter ``at`` or by name, with ``prefix`` before it.

    ``only`` is the module of a private one; None: calls of this name mean it everywhere.
    """

    at: int
    parameter: str
    prefix: str
    forms: tuple[str, ...]
    only: Path | None = None


_Functions = tuple[ast.FunctionDef, ...]
_Call = tuple[Path, ast.Call, _Functions]
_CARRIERS = {
    **{name: (_Taker(0, "id", "", (name,)),) for name in CLASSES},
    "PlanVerdict": (_Taker(1, "id", "", ()),),
    # values/model.py and spec/reading/validation.py: both become a SpecError
    "problem": (_Taker(0, "kind", "spec.", ("SpecError",)),),
    "Problem": (_Taker(0, "id", "", ("SpecError",)),),
    # spec/project_wide/collisions.py: who has to change gets a SpecError
    "Collision": (_Taker(0, "id", "", ("SpecError",)),),
    # spark/sql_functions.py: what refuses an SQL text raises it
    "SqlRefusal": (_Taker(0, "id", "", ("TransformError",)),),
    # sources/files/spark_trouble.py: the source's policy decides which
    "_Case": (_Taker(0, "id", "", ("RefusedError", "warning")),),
}


class Uses:
    """All uses of the library, and the ids that could not be read (`unread`)."""

    def __init__(self, library: Path = LIBRARY) -> None:
        modules = {
            file.relative_to(library): ast.parse(file.read_text()) for file in sorted(library.rglob("*.py"))
        }
        self._constants = {name: id for module in modules.values() for name, id in _constants(module)}
        self._takers: dict[str, tuple[_Taker, ...]] = dict(_CARRIERS)
        nodes = [(file, node, inside) for file, module in modules.items() for node, inside in _nodes(module)]
        calls = [(file, node, inside) for file, node, inside in nodes if isinstance(node, ast.Call)]
        while self._find_takers(calls):
            pass
        self.unread: list[str] = []
        self.found = {
            Use(id, form, file) for file, call, _ in calls for id, form in self._of_call(file, call)
        }
        self.found |= {
            Use(id, "notice", file)
            for file, node, _ in nodes
            if isinstance(node, ast.Dict)
            for id in self._of_notice(node)
        }
        self.found |= set(self._of_refusals())

    def _of_refusals(self) -> Iterator[Use]:
        """A drain raises what the checks of the query refuse as a TransformError (drain/planning.py)."""
        raised = {use.id for use in self.found if use.form in CLASSES}
        for use in self.found:
            if use.form == "refused" and use.id not in raised:
                yield Use(use.id, "TransformError", use.file)

    def _find_takers(self, calls: list[_Call]) -> bool:
        """Add the functions that hand a parameter of theirs to a taker; whether there was a new one."""
        before = dict(self._takers)
        for file, call, inside in calls:
            for taker in self._taking(file, call):
                prefix, parameter = _parameter(_argument(call, taker.parameter, taker.at))
                for function in inside if parameter else ():
                    self._add_taker(file, function, parameter, taker.prefix + prefix, _forms(call, taker))
        return before != self._takers

    def _add_taker(
        self, file: Path, function: ast.FunctionDef, parameter: str, prefix: str, forms: tuple[str, ...]
    ) -> None:
        names = [argument.arg for argument in function.args.args]
        known = self._takers.get(function.name, ())
        if parameter in names and function.name not in _CARRIERS:
            at = names.index(parameter) - (names[0] in ("self", "cls"))
            only = file if function.name.startswith("_") else None
            taker = _Taker(at, parameter, prefix, forms, only)
            if taker not in known:
                self._takers[function.name] = (*known, taker)

    def _taking(self, file: Path, call: ast.Call) -> list[_Taker]:
        takers = self._takers.get(_name(call.func) or "", ())
        return [taker for taker in takers if taker.only in (None, file)]

    def _of_call(self, file: Path, call: ast.Call) -> Iterator[tuple[str, str]]:
        for taker in self._taking(file, call):
            given = _argument(call, taker.parameter, taker.at)
            for id in self._ids(given, taker.prefix):
                if _SHAPE.fullmatch(id):
                    yield from ((id, form) for form in _forms(call, taker))
            if _name(call.func) in _CARRIERS and given is not None and not self._is_read(given):
                self.unread.append(f"{file}:{call.lineno} {ast.unparse(given)}")

    def _of_notice(self, node: ast.Dict) -> tuple[str, ...]:
        """The ids of an entry of a run record's ``notices``."""
        parts = {_text(key): value for key, value in zip(node.keys, node.values, strict=True) if key}
        whole = {"id", "what", "about", "do"} == set(parts)
        return tuple(id for id in self._ids(parts["id"], "") if _SHAPE.fullmatch(id)) if whole else ()

    def _ids(self, given: ast.expr | None, prefix: str) -> tuple[str, ...]:
        if isinstance(given, ast.IfExp):
            return self._ids(given.body, prefix) + self._ids(given.orelse, prefix)
        if isinstance(given, ast.Name):
            return (self._constants[given.id],) if given.id in self._constants else ()
        text = _text(given)
        if text is not None:
            return (prefix + text,)
        return _BUILT.get(ast.unparse(given), ()) if given else ()

    def _is_read(self, given: ast.expr) -> bool:
        return (
            bool(self._ids(given, ""))
            or ast.unparse(given) in _PASSED_ON
            or any(
                _parameter(given)[1] == taker.parameter for each in self._takers.values() for taker in each
            )
        )


def _nodes(module: ast.Module) -> Iterator[tuple[ast.AST, _Functions]]:
    """All below, each with the functions that it stands in."""
    left: list[tuple[ast.AST, _Functions]] = [(module, ())]
    while left:
        node, inside = left.pop()
        yield node, inside
        if isinstance(node, ast.FunctionDef):
            inside = (*inside, node)
        left.extend((child, inside) for child in ast.iter_child_nodes(node))


def _constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Ids that stand at the top of a module under a name."""
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            id = _text(node.value)
            if id is not None and _SHAPE.fullmatch(id):
                yield node.targets[0].id, id


def _forms(call: ast.Call, taker: _Taker) -> tuple[str, ...]:
    """The class that is raised, or the level that a verdict is given."""
    if taker.forms:
        return taker.forms
    level = _text(_argument(call, "level", 0))
    return (level,) if level is not None and level in get_args(Level) else ()


def _parameter(given: ast.expr | None) -> tuple[str, str]:
    """The text before a parameter and its name: of ``id`` and of ``f"area.{id}"``."""
    if isinstance(given, ast.Name):
        return "", given.id
    if isinstance(given, ast.JoinedStr) and len(given.values) == 2:
        before, value = given.values
        if isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Name):
            return _text(before) or "", value.value.id
    return "", ""


def _argument(call: ast.Call, name: str, at: int) -> ast.expr | None:
    named = next((each.value for each in call.keywords if each.arg == name), None)
    return named or (call.args[at] if 0 <= at < len(call.args) else None)


def _name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
