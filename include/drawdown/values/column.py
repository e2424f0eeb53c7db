"""A column of a schema: what is known of it without Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column: its name, its type as Spark writes it (``array<int>``), and its line from 1."""

    name: str
    type: str
    line: int = 1
