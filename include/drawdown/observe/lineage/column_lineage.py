"""From which source columns each output column of a pipeline comes, kept beside the checkpoint.

spark_column_lineage.py finds it out while a run goes on; pages and events read it without Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self

from drawdown.layout import column_lineage_of
from drawdown.workspace import Generation

How = Literal[
    "identity", "transformation", "aggregation",
    "filter", "join", "group by", "sort", "window", "conditional",
]  # fmt: skip
DIRECT: tuple[How, ...] = ("identity", "transformation", "aggregation")
"""The value goes into the output; the others only decide which row or value does."""

_FORMAT = 1


@dataclass(frozen=True, order=True)
class Origin:
    """A column of a source, and how it reaches the output.

    Attributes:
        masked: only a hash, a count or a masked form of the value arrives.
    """

    source: str
    column: str
    how: How
    masked: bool = False


@dataclass(frozen=True)
class OutputColumns:
    """The columns of a pipeline's output and sources.

    Attributes:
        origins: by output column, in the output's order, the columns that it is computed from.
        rows: the columns that decide which rows the output has: by a filter, a join, groups.
        types: by output column its type, as Spark writes it.
        sources: by source its columns, with their types.
    """

    origins: Mapping[str, tuple[Origin, ...]]
    rows: tuple[Origin, ...]
    types: Mapping[str, str]
    sources: Mapping[str, Mapping[str, str]]

    def as_json(self) -> str:
        """Return the text of the file that keeps it."""
        content = {
            "format": _FORMAT,
            "columns": [
                {"name": name, "type": self.types[name], "from": _listed(found)}
                for name, found in self.origins.items()
            ],
            "rows": _listed(self.rows),
            "sources": {name: dict(columns) for name, columns in self.sources.items()},
        }
        return json.dumps(content, ensure_ascii=False, indent=1)

    @classmethod
    def of_json(cls, text: str) -> Self | None:
        """Return what `as_json` wrote; None for another version's."""
        with suppress(ValueError, KeyError, TypeError):
            content = json.loads(text)
            if content["format"] == _FORMAT:
                columns = content["columns"]
                return cls(
                    {each["name"]: _origins(each["from"]) for each in columns},
                    _origins(content["rows"]),
                    {each["name"]: each["type"] for each in columns},
                    content["sources"],
                )
        return None


def columns(generation: Generation) -> OutputColumns | None:
    """Return the columns as the generation's last run knew them; None before the first run.

    Raises:
        SourceError: the storage cannot be reached.
    """
    try:
        text = generation.storage.read_bytes(_file(generation)).decode()
    except FileNotFoundError:
        return None
    return OutputColumns.of_json(text)


def keep_columns(generation: Generation, found: OutputColumns) -> None:
    """Keep the columns with the generation; writes nothing when they are what is kept already.

    Raises:
        SourceError: the storage cannot be reached.
    """
    if columns(generation) != found:
        generation.storage.write_atomic(_file(generation), found.as_json().encode())


def _file(generation: Generation) -> str:
    return f"{column_lineage_of(generation.pipeline.name, generation.number)}/columns.json"


def _listed(origins: Iterable[Origin]) -> list[dict[str, Any]]:
    return [
        {"source": each.source, "column": each.column, "how": each.how}
        | ({"masked": True} if each.masked else {})
        for each in origins
    ]


def _origins(listed: Iterable[Mapping[str, Any]]) -> tuple[Origin, ...]:
    return tuple(Origin(e["source"], e["column"], e["how"], e.get("masked", False)) for e in listed)
