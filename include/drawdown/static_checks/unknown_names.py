"""The errors about names that are not there."""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.errors import SpecError
from drawdown.values.nearest import did_you_mean


def unknown_column(owner: str, name: str, known: Sequence[str], where: str) -> SpecError:
    """Of a key in pipeline.yaml or quality.yaml that names a column."""
    return SpecError(
        "spec.unknown-column",
        f"{owner} names the column {name!r}, which is not there; {did_you_mean(name, known)}",
        where=where,
        do="correct the name, or add the column to the schema",
    )
