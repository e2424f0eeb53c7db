"""A part of a JSON Schema in words: ``duration``, ``whole number, 1 to 10,000``, ``list of columns``."""

from __future__ import annotations

from pydantic import TypeAdapter

from drawdown.spec.clusters.cluster import Memory, Size
from drawdown.spec.key_reference import Node, resolved
from drawdown.values.duration import Duration
from drawdown.values.model import Column, Name

_BY_PATTERN = {
    TypeAdapter(type).json_schema()["pattern"]: word
    for type, word in (
        (Duration, "duration"),
        (Name, "name"),
        (Column, "column"),
        (Memory, "size such as `512m`, `2g`"),
        (Size, "size such as `64k`, `512m`, `2g`"),
    )
}
_SINGLE = {"string": "text", "boolean": "`true`, `false`", "integer": "whole number", "number": "number"}


def value_words(node: Node, schema: Node) -> str:
    """What a key can hold."""
    if "enum" in node:
        return ", ".join(f"`{each}`" for each in node["enum"])
    if "const" in node:
        return f"`{node['const']}`"
    if choices := [*node.get("anyOf", ()), *node.get("oneOf", ())]:
        words = [value_words(each, schema) for each in choices if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if node.get("type") == "array":
        return _list_words(node, schema)
    model, node = resolved(node, schema)
    if model or node.get("type") == "object":
        return "keys and values"
    if node.get("pattern") in _BY_PATTERN:
        return _BY_PATTERN[node["pattern"]]
    return _SINGLE.get(node.get("type", ""), "any value") + _range(node)


def _list_words(node: Node, schema: Node) -> str:
    each = value_words(node["items"], schema)
    each = "texts" if each == "text" else f"{each}s" if each in ("name", "column", "number") else each
    return f"list of {each}"


def _range(node: Node) -> str:
    least, most = node.get("minimum"), node.get("maximum")
    if least is None:
        return ", above 0" if "exclusiveMinimum" in node else ""
    return f", {least:,} or more" if most is None else f", {least:,} to {most:,}"
