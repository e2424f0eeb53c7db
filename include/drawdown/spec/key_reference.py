"""Every key of the YAML files: its place in the JSON Schema, and what ``keys/<file>.toml`` says about it.

For editors and docs only: what reads a spec imports nothing of this.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "keys"
EFFECTS = {
    "run": "with the next run",
    "state": "with the next run; state is kept, and so is what was published",
    "batch": "behind a batch that a dead run has begun; else with the next run",
    "slice": "once no older batch waits to be published; else with the next run",
    "audit": "with the next audit, also of rows that were staged before",
    "dag": "when Airflow parses the file again",
    "command": "with the next command, task or page that asks for it",
    "new": "for a table that is made from then on; an existing one stays as it is",
    "fixed": "never for this checkpoint: refused, except by a rebuild or in a new pipeline",
    "keys": "as its keys say",
}
"""When a change of a key takes effect (tests/unit/test_changed_keys.py)."""
Node = dict[str, Any]
"""A part of a JSON Schema."""


@dataclass(frozen=True)
class KeyText:
    """What a TOML file says about one key.

    Attributes:
        text: what it does, and what happens without it.
        example: a value; None for a key that the examples of its siblings show.
        since: the version that brought it.
        type, default: said in words where the schema cannot say it.
        changed: one of EFFECTS; None in a file whose keys take effect as they are read.
    """

    text: str
    example: Any = None
    since: str = "0.1"
    type: str | None = None
    default: str | None = None
    changed: str | None = None


@dataclass(frozen=True)
class FileText:
    """What a TOML file says about its YAML file: what it is for, a short example, and the keys by path."""

    opening: str
    example: str
    keys: Mapping[str, KeyText]

    def key(self, place: KeyPlace) -> str:
        """Return the name under which the place is described: that of its kind, else its path."""
        own = f"{place.path} ({place.kind})"
        return own if own in self.keys else place.path


@dataclass(frozen=True)
class KeyPlace:
    """One key in a JSON Schema.

    Attributes:
        path: ``sources.NAME.watermark.delay``, ``rules[].check``.
        kind: the value of ``kind:`` beside it, where that decides which keys there are; else "".
        model: the name of the model that has it; "" for the file's own.
        node: the key's part of the schema, for changing as well.
        required: whether the mapping is refused without it.
    """

    path: str
    kind: str
    model: str
    node: Node
    required: bool

    @property
    def section(self) -> str:
        """Return the path of the mapping that holds the key; "" for the file."""
        return self.path.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]


@cache
def file_text(name: str) -> FileText:
    """Read what is said about pipeline.yaml, quality.yaml, project.yaml or case.yaml."""
    given = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    keys = {path: KeyText(**said) for path, said in given["keys"].items()}
    return FileText(given["opening"].strip(), given["example"].lstrip(), keys)


def places(schema: Node) -> Iterator[KeyPlace]:
    """Yield every key of a file's schema, parents first; one that several kinds have comes once for each."""
    yield from _keys(schema, schema, "", "")


def describe(name: str, schema: Node) -> None:
    """Write sentences and examples into a file's schema, in place of the docstrings of models.

    Raises KeyError for a key without a sentence.
    """
    said = file_text(name)
    for model in schema.get("$defs", {}).values():
        model.pop("description", None)
    schema["description"] = " ".join(said.opening.split())
    for place in places(schema):
        about = said.keys[said.key(place)]
        place.node["description"] = about.text
        if about.example is not None:
            place.node["examples"] = [about.example]


def resolved(node: Node, schema: Node) -> tuple[str, Node]:
    """Return the name of the model that a node refers to and its part of the schema; ("", node) if none."""
    name = node.get("$ref", "").removeprefix("#/$defs/")
    return (name, schema["$defs"][name]) if name else ("", node)


def _keys(mapping: Node, schema: Node, path: str, model: str) -> Iterator[KeyPlace]:
    properties = mapping.get("properties", {})
    kind = properties.get("kind", {}).get("const", "")
    for name, node in properties.items():
        place = KeyPlace(f"{path}{name}", kind, model, node, name in mapping.get("required", ()))
        yield place
        yield from _below(node, schema, place.path)


def _below(node: Node, schema: Node, path: str) -> Iterator[KeyPlace]:
    model, node = resolved(node, schema)
    if model:
        yield from _keys(node, schema, f"{path}.", model)
    for choice in (*node.get("anyOf", ()), *node.get("oneOf", ())):
        yield from _below(choice, schema, path)
    if "items" in node:
        yield from _below(node["items"], schema, f"{path}[]")
    for values in node.get("patternProperties", {}).values():
        yield from _below(values, schema, f"{path}.NAME")
