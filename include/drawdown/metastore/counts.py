"""Counts as columns, which runs and batches share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from drawdown.metastore.records import Counts

NAMES = tuple(f.name for f in fields(Counts))
"""The columns."""


def to_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's fields as column values: ``counts`` becomes one column per count."""
    columns = dict(values)
    if "counts" in columns:
        columns |= asdict(columns.pop("counts"))
    return columns


def from_columns(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row's columns as a record's fields, the reverse of ``to_columns``."""
    columns = dict(row)
    columns["counts"] = Counts(*(columns.pop(name) for name in NAMES))
    return columns
