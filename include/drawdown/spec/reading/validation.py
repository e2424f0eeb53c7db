"""Turns pydantic's errors into one SpecError with file, line, the closest key and the next step."""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from drawdown.errors import SpecError
from drawdown.spec.reading.yaml_source import Document, KeyPath
from drawdown.values.nearest import did_you_mean

_SHOWN = 10
_TYPES = {
    "string_type": "must be text, in quotes if in doubt",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be a mapping, `key: value`",
    "model_type": "must be a mapping, `key: value`",
    "model_attributes_type": "must be a mapping, `key: value`",
}
"""What pydantic's kinds of errors mean in YAML's words."""
_M = TypeVar("_M", bound=BaseModel)


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a file: ``path`` is the key path, the rest as in SpecError."""

    id: str
    what: str
    path: KeyPath
    do: str = ""


def validate(model: type[_M], document: Document) -> _M:
    """Return the document as a model. Raises one SpecError with all problems of the file."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    raise spec_error(document, [_problem(model, dict(each), document) for each in found])


def spec_error(document: Document, problems: Iterable[Problem]) -> SpecError:
    """Return an error with the first problem's id and step; the others follow in ``what``, one per line.

    Unknown keys come first, because a misspelt key explains a missing one; then file order.
    """
    by_path: dict[KeyPath, Problem] = {}
    for each in problems:
        by_path.setdefault(each.path, each)
    ordered = sorted(
        by_path.values(), key=lambda each: (each.id != "spec.unknown-key", document.line(each.path))
    )
    first, others = ordered[0], ordered[1:]
    lines = [_sentence(first)]
    lines += [f"  also {document.where(each.path)}: {_sentence(each)}" for each in others[:_SHOWN]]
    if len(others) > _SHOWN:
        lines.append(f"  and {len(others) - _SHOWN} more")
    return SpecError(first.id, "\n".join(lines), where=document.where(first.path), do=first.do)


def _sentence(each: Problem) -> str:
    name = ".".join(str(part)[:80] for part in each.path)
    return f"{name}: {each.what}" if name else each.what


def _problem(model: type[BaseModel], error: dict[str, Any], document: Document) -> Problem:
    location: tuple[str | int, ...] = error["loc"]
    kind, context = error["type"], error.get("ctx", {})
    if kind in ("extra_forbidden", "missing"):
        key = str(location[-1])
        at = (*_known_part(location[:-1], document), location[-1])
        if kind == "missing":
            return Problem("spec.missing-key", "is missing", at, f"add `{key}:`")
        known = did_you_mean(key, _keys(model, location[:-1]))
        return Problem("spec.unknown-key", f"unknown key, {known}", at, "correct or remove the key")
    path = _known_part(location, document)
    if "what" in context:
        return Problem(f"spec.{kind}", context["what"], (*path, *context["at"]), context["do"])
    if kind == "literal_error":
        return Problem("spec.wrong-value", f"must be {context['expected']}", path, "write one of them")
    message = _TYPES.get(kind) or error["msg"].removeprefix("Input ").replace("should ", "must ")
    kind = "wrong-type" if kind.endswith(("_type", "_parsing")) else "wrong-value"
    return Problem(f"spec.{kind}", message, path, "see the examples or the JSON Schema")


def _known_part(location: tuple[str | int, ...], document: Document) -> KeyPath:
    """Return only the keys of a location: Pydantic adds names of union members and validators."""
    path: KeyPath = ()
    for part in location:
        if (*path, part) in document.lines:
            path = (*path, part)
    return path


def _keys(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """Return the known keys at a location, following it through models, mappings and lists."""
    kind: Any = model
    for part in location:
        kind = _below(kind, part)
    owner = _model_in(kind)
    if owner is None:
        return []
    return [field.alias or name for name, field in owner.model_fields.items()]


def _below(kind: Any, part: str | int) -> Any:
    if (chosen := _member_named(kind, part)) is not None:
        return chosen
    owner = _model_in(kind)
    if owner is not None:
        fields = {field.alias or name: field.annotation for name, field in owner.model_fields.items()}
        return fields.get(str(part))
    for member in _members(kind):
        if get_origin(member) in (dict, list):
            return get_args(member)[-1]
    return None


def _model_in(kind: Any) -> type[BaseModel] | None:
    for member in _members(kind):
        if isinstance(member, type) and issubclass(member, BaseModel):
            return member
    return None


def _member_named(kind: Any, part: str | int) -> Any:
    """Return the member of a union by its class name, as Pydantic reports it."""
    for member in _members(kind):
        model = get_args(member)[0] if get_origin(member) is Annotated else member
        if isinstance(model, type) and issubclass(model, BaseModel) and model.__name__ == part:
            return model
    return None


def _members(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)
