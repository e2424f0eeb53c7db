"""docs/*-yaml.md, made from the models and the sentences beside them: ``python -m dev.reference_pages``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from dev.reference.kinds import settings, sinks, sources
from dev.reference.values import value_words
from drawdown.spec.json_schema import FILES, schema_of
from drawdown.spec.key_reference import (
    EFFECTS,
    FileText,
    KeyPlace,
    KeyText,
    Node,
    file_text,
    places,
    resolved,
)

DOCS = Path(__file__).resolve().parents[1] / "docs"
_MADE = """\
`python -m dev.reference_pages` makes this page from the models and from
`include/drawdown/spec/keys/{name}.toml`; do not edit it. With [{name}.schema.json](schema/{name}.schema.json)
editors check the file and show the same sentences. Durations have a unit: `30 minutes`, `1 day`,
`2 hours 30 minutes`.
"""
_HEAD = "| key | value | default | since | what it does |\n|---|---|---|---|---|"
_CHANGED = """\
## When a change takes effect

`drawdown plan NAME` says of an edited spec what is refused, and what waits. `tests/unit/test_changed_keys.py`
changes the keys one by one; [Guarantees](guarantees.md#how) says how those work that wait.

| key | a change takes effect |
|---|---|
"""
_MORE = {"pipeline": lambda: [*sources(), *sinks(), *settings()]}


def path_of(name: str) -> Path:
    return DOCS / f"{name}-yaml.md"


def page(name: str) -> str:
    """The page of pipeline.yaml, quality.yaml, project.yaml or case.yaml."""
    schema, said = schema_of(name), file_text(name)
    lines = [f"# Every key of {name}.yaml", "", said.opening, "", "```yaml", said.example.rstrip(), "```"]
    lines += ["", _MADE.format(name=name)]
    for section, found in _sections(places(schema)):
        if section:
            lines += [f"## {section.replace('[]', '')}", "", said.keys[section.replace("[]", "")].text, ""]
        else:
            lines += ["## The file", ""]
        lines += [_HEAD, *_rows(found, said, schema), ""]
    lines += _MORE.get(name, list)()
    lines += _effects(said)
    return "\n".join(lines).rstrip() + "\n"


def _effects(said: FileText) -> list[str]:
    """The keys by when a change of them takes effect; nothing for a file that does not say it."""
    rows = []
    for effect, words in EFFECTS.items():
        keys = [f"`{path.split(' (')[0]}:`" for path, text in said.keys.items() if text.changed == effect]
        if keys and effect != "keys":
            rows.append(f"| {', '.join(dict.fromkeys(keys))} | {words} |")
    return ["", _CHANGED + "\n".join(rows)] if rows else []


def _sections(found: Iterable[KeyPlace]) -> Iterator[tuple[str, list[KeyPlace]]]:
    """The places by the mapping that holds them, in the order of the file."""
    by_section: dict[str, list[KeyPlace]] = {}
    for place in found:
        by_section.setdefault(place.section, []).append(place)
    for section, members in by_section.items():
        yield section.removesuffix(".NAME"), members


def _rows(found: list[KeyPlace], said: FileText, schema: Node) -> Iterator[str]:
    """One line for each key; kinds that describe a key in the same words share one."""
    kinds = {place.kind for place in found if place.kind}
    by_key: dict[str, list[KeyPlace]] = {}
    for place in found:
        by_key.setdefault(said.key(place), []).append(place)
    for key, same in by_key.items():
        yield _row(same[0], said.keys[key], schema, _of_kinds([each.kind for each in same], kinds))


def _of_kinds(kinds: Collection[str], all_kinds: Collection[str]) -> str:
    return "" if len(kinds) >= len(all_kinds) else f"<br>of {', '.join(f'`{kind}`' for kind in kinds)}"


def _row(place: KeyPlace, text: KeyText, schema: Node, kinds: str) -> str:
    has_section = bool(resolved(_inner(place.node), schema)[0])
    anchor = "".join(char for char in place.path.lower() if char.isalnum() or char in "_-")
    name = f"[`{place.name}`](#{anchor})" if has_section else f"`{place.name}`"
    shown = (
        f"{text.text} Example: `{place.name}: {flow(text.example)}`"
        if text.example is not None
        else text.text
    )
    cells = (
        name + kinds,
        text.type or value_words(place.node, schema),
        _default(place, text),
        text.since,
        shown.replace("|", "\\|"),
    )
    return f"| {' | '.join(cells)} |"


def _inner(node: Node) -> Node:
    """The mapping that a key holds itself, in a list, by names, or unless it is null."""
    for inner in (
        *node.get("anyOf", ()),
        *node.get("oneOf", ()),
        *node.get("patternProperties", {}).values(),
    ):
        if "$ref" in (found := _inner(inner)):
            return found
    return _inner(node["items"]) if "items" in node else node


def _default(place: KeyPlace, text: KeyText) -> str:
    if text.default:
        return text.default
    if place.required:
        return "required"
    default = place.node.get("default")
    if isinstance(default, Mapping):
        return "see its keys"
    if default is None or default == "":
        return "none" if "default" in place.node else "empty"
    return f"`{flow(default)}`"


def flow(value: Any) -> str:
    """A value in one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


if __name__ == "__main__":
    for each in FILES:
        path_of(each).write_text(page(each), encoding="utf-8")
