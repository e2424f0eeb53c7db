"""From which columns of the sources each column of the sink comes, as its last run has recorded it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Checkpoint
from drawdown.observe.lineage.column_lineage import DIRECT, Origin, columns
from drawdown.spec import Pipeline
from drawdown.workspace import Generation, Workspace


@dataclass(frozen=True)
class SinkColumn:
    """A column; ``values``: what it is computed from, ``decided_by``: what else decides about its value."""

    name: str
    type: str
    values: Sequence[str]
    decided_by: Sequence[str]


@dataclass(frozen=True)
class SinkColumns:
    """The columns in the sink's order; ``rows``: what decides which rows there are."""

    columns: Sequence[SinkColumn]
    rows: Sequence[str]


def sink_columns(workspace: Workspace, spec: Pipeline | None, live: Checkpoint | None) -> SinkColumns | None:
    """Return the columns of the generation in use; None where nothing is recorded, or cannot be read now."""
    if spec is None or live is None:
        return None
    try:
        found = columns(Generation(workspace, spec, live))
    except DrawdownError:  # the rest of the page does not need the storage
        return None
    if found is None:
        return None
    return SinkColumns(
        [
            SinkColumn(
                name,
                found.types.get(name, ""),
                _texts(each for each in origins if each.how in DIRECT),
                _texts(each for each in origins if each.how not in DIRECT),
            )
            for name, origins in found.origins.items()
        ],
        _texts(found.rows),
    )


def _texts(origins: Iterable[Origin]) -> list[str]:
    return list(dict.fromkeys(_text(each) for each in origins))


def _text(origin: Origin) -> str:
    how = "" if origin.how == "identity" else f" ({origin.how}{', masked' if origin.masked else ''})"
    return f"{origin.source}.{origin.column}{how}"
