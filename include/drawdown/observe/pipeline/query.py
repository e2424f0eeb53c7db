"""The query of a pipeline as its checkpoint fixes it: sources, watermarks, operators, columns of the sink.

It is read from the fingerprint that each generation keeps (plan/fingerprint.py), so nothing starts Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from drawdown.metastore.records import Checkpoint

_SOURCE = "sources."


@dataclass(frozen=True)
class FixedSource:
    """A streaming source; ``watermark`` is its column and delay."""

    name: str
    reads: str
    schema: str | None
    watermark: str | None


@dataclass(frozen=True)
class FixedOperator:
    """A stateful operator, parents first; ``facts`` by label: keys, values, columns of the sides ..."""

    name: str
    facts: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class SchemaChange:
    """The columns of the sink since a generation was created, against the generation before it."""

    generation: int
    since: datetime
    added: Sequence[str]
    removed: Sequence[str]


@dataclass(frozen=True)
class FixedQuery:
    """What the generation in use fixes."""

    generation: int
    since: datetime
    sources: Sequence[FixedSource]
    operators: Sequence[FixedOperator]
    sink: str
    mode: str
    keys: Sequence[str]
    provider: str
    partitions: int | None
    watermark_policy: str
    columns: Sequence[str]
    versions: Mapping[str, Any] = field(default_factory=dict)


def fixed_query(checkpoint: Checkpoint) -> FixedQuery:
    """Return the query of a generation; what an older version has not recorded is empty."""
    known = checkpoint.fingerprint
    return FixedQuery(
        generation=checkpoint.generation,
        since=checkpoint.created_at,
        sources=list(_sources(known)),
        operators=[_operator(each) for each in known.get("state.kept") or known.get("state.operators", ())],
        sink=str(known.get("sink", "")),
        mode=str(known.get("sink.mode", "")),
        keys=list(known.get("sink.keys", ())),
        provider=str(known.get("state.provider", "")),
        partitions=known.get("state.partitions"),
        watermark_policy=str(known.get("watermark_policy", "")),
        columns=columns_of(known),
        versions=dict(known.get("versions") or {}),
    )


def schema_changes(generations: Iterable[Checkpoint]) -> list[SchemaChange]:
    """Return how the sink's columns changed from generation to generation, newest first."""
    found: list[SchemaChange] = []
    before: list[str] | None = None
    for each in sorted(generations, key=lambda checkpoint: checkpoint.generation):
        columns = columns_of(each.fingerprint)
        if not columns:
            continue
        if before is None or before != columns:
            old = before or []
            found.append(
                SchemaChange(
                    each.generation,
                    each.created_at,
                    [column for column in columns if column not in old],
                    [column for column in old if column not in columns],
                )
            )
        before = columns
    return found[::-1]


def columns_of(fingerprint: Mapping[str, Any]) -> list[str]:
    """Return the sink's columns with their types, as recorded."""
    found, depth, start = [], 0, 0
    text = str(fingerprint.get("sink.schema") or "")
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()] if text else []


def _sources(known: Mapping[str, Any]) -> Iterable[FixedSource]:
    for key, reads in known.items():
        name = key.removeprefix(_SOURCE)
        if key.startswith(_SOURCE) and "." not in name:
            yield FixedSource(name, str(reads), known.get(f"{key}.schema"), known.get(f"{key}.watermark"))


def _operator(kept: Any) -> FixedOperator:
    if isinstance(kept, str):  # of a version that kept a text only
        return FixedOperator(kept, {})
    facts = {key.replace("_", " "): _listed(value) for key, value in kept.items() if key != "operator"}
    return FixedOperator(str(kept.get("operator", "")), {key: value for key, value in facts.items() if value})


def _listed(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}: {_bound(each)}" for key, each in value.items()]
    return [str(each) for each in value] if isinstance(value, list | tuple) else [str(value)]


def _bound(milliseconds: Any) -> str:
    """Up to where a join forgets rows of a side, relative to the watermark."""
    if milliseconds is None:
        return "rows are kept for ever"
    when = "at" if not milliseconds else "after" if milliseconds > 0 else "before"
    amount = f"{abs(milliseconds) / 1000:g} s " if milliseconds else ""
    return f"rows are dropped {amount}{when} the watermark"
