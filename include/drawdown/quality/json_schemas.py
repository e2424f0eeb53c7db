"""The JSON schemas that an expectation may be given: whole in themselves, of bounded size.

The library that judges rows by a schema (jsonschema) fetches what ``$ref`` and ``$id`` point to, by ``http``
or from a file. So only keywords on the list below are taken, and a ``$ref`` points to a part of the same
schema that has been looked at, too; a value under ``const`` is not one. Schemas that cost more for a row than
its own size are refused: jsonschema follows each reference again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from drawdown.values.nearest import did_you_mean

_DATA = frozenset({
    "$comment", "const", "contentEncoding", "contentMediaType", "default", "deprecated", "description",
    "dependentRequired", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains",
    "maxItems", "maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength",
    "minProperties", "minimum", "multipleOf", "pattern", "readOnly", "required", "title", "type",
    "uniqueItems", "writeOnly",
})  # fmt: skip
"""Keywords whose value is no schema."""
_SAME_VALUE = frozenset({"not", "if", "then", "else"})
_ALL_OF = frozenset({"allOf", "anyOf", "oneOf"})
_SCHEMA = _SAME_VALUE | {
    "additionalItems", "additionalProperties", "contains", "items", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties",
}  # fmt: skip
_LIST = _ALL_OF | {"items", "prefixItems"}
_NAMED = frozenset({
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"
})  # fmt: skip
_SAME_VALUE_NAMED = frozenset({"dependencies", "dependentSchemas"})
_KNOWN = _DATA | _SCHEMA | _LIST | _NAMED | {"$ref", "$schema"}
_DIALECTS = frozenset({
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
})  # fmt: skip
"""What ``$schema`` may be: jsonschema has these itself."""
_MOST_PARTS = 1_000
_DEEPEST = 30
_MOST_STEPS = 10_000


class _RefusedError(Exception):
    """Why a schema is refused."""


def why_refused(schema: Any) -> str | None:
    """Say what is wrong with the value of ``json_schema``; None when rows may be judged by it."""
    if not isinstance(schema, dict):
        return "must be a JSON schema: keys and values"
    parts: dict[str, Any] = {}
    try:
        _collect(schema, "", parts, 0)
        _Steps(parts).refuse_many()
    except _RefusedError as why:
        return str(why)
    return None


def _collect(schema: Any, at: str, parts: dict[str, Any], depth: int) -> None:
    """Add a schema and those in it by their JSON pointers."""
    if isinstance(schema, bool):
        schema = {}
    if not isinstance(schema, dict):
        raise _RefusedError(f"has no schema at #{at}")
    if depth > _DEEPEST or len(parts) >= _MOST_PARTS:
        raise _RefusedError(f"is too large: at most {_MOST_PARTS} schemas, {_DEEPEST} in each other")
    parts[at] = schema
    for keyword, value in schema.items():
        _refuse_keyword(keyword, value, at)
        for name, part in _inner(keyword, value):
            _collect(part, f"{at}{name}", parts, depth + 1)


def _refuse_keyword(keyword: str, value: Any, at: str) -> None:
    if keyword not in _KNOWN:
        raise _RefusedError(f"has the keyword {keyword} at #{at}; {did_you_mean(keyword, _KNOWN)}")
    if keyword == "$schema" and str(value).removesuffix("#") not in _DIALECTS:
        raise _RefusedError(f"names a $schema that is none of {', '.join(sorted(_DIALECTS))}")
    if keyword == "$ref" and not (isinstance(value, str) and (value == "#" or value.startswith("#/"))):
        raise _RefusedError(f"points out of itself at #{at}: $ref may only be # or #/…")
    if keyword == "type":
        kinds = value if isinstance(value, list) else [value]
        if not all(isinstance(kind, str) for kind in kinds):
            raise _RefusedError(f"has a type at #{at} that is no name")


def _inner(keyword: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The schemas under a keyword, with the rest of their pointers."""
    if keyword in _NAMED and isinstance(value, dict):
        for name, part in value.items():
            # Of `dependencies` a list names properties.
            if keyword != "dependencies" or not isinstance(part, list):
                yield f"/{keyword}/{_escaped(name)}", part
    elif keyword in _LIST and isinstance(value, list):
        yield from ((f"/{keyword}/{index}", part) for index, part in enumerate(value))
    elif keyword in _SCHEMA | _LIST | _NAMED:
        if keyword not in _SCHEMA:
            raise _RefusedError(f"has no {'list' if keyword in _LIST else 'schemas by name'} under {keyword}")
        yield f"/{keyword}", value


def _escaped(name: str) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


class _Steps:
    """How many schemas a single value is held against, with references followed."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts
        self._known: dict[str, int] = {}
        self._open: set[str] = set()

    def refuse_many(self) -> None:
        """Raise _RefusedError where they are too many, or endless."""
        for at in self._parts:
            self._count(at)

    def _count(self, at: str) -> int:
        if at in self._known:
            return self._known[at]
        if at in self._open:
            raise _RefusedError(f"refers to itself for ever at #{at}")
        self._open.add(at)
        total = 1 + sum(self._count(other) for other in self._same_value(at))
        self._open.discard(at)
        if total > _MOST_STEPS:
            raise _RefusedError(f"takes more than {_MOST_STEPS} steps for a value at #{at}")
        self._known[at] = total
        return total

    def _same_value(self, at: str) -> Iterator[str]:
        for keyword, value in self._parts[at].items():
            if keyword == "$ref":
                target = unquote(value[1:])
                if target not in self._parts:
                    raise _RefusedError(f"points to #{target}, where it has no schema")
                yield target
            elif keyword in _SAME_VALUE | _ALL_OF | _SAME_VALUE_NAMED:
                yield from (f"{at}{name}" for name, _ in _inner(keyword, value))
