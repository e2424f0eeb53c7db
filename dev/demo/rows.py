"""Tables as multisets of rows, in one form whatever engine and file format they came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

Row = tuple[tuple[str, object], ...]
"""Column names with values, in the order of the names."""


@dataclass(frozen=True)
class Rows:
    """A multiset of rows."""

    counted: Counter[Row]

    @property
    def total(self) -> int:
        return self.counted.total()


@dataclass(frozen=True)
class Comparison:
    """How a table differs from what it should hold; equal as multisets, or not equal."""

    table: str
    expected: Rows
    found: Rows

    @property
    def missing(self) -> list[Row]:
        """Rows that should be there (more often), each as often as it is missing."""
        return list((self.expected.counted - self.found.counted).elements())

    @property
    def surplus(self) -> list[Row]:
        """Rows that should not be there (so often)."""
        return list((self.found.counted - self.expected.counted).elements())

    @property
    def equal(self) -> bool:
        return self.expected.counted == self.found.counted


def normal(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Rows:
    """Rows made comparable: times as UTC without a zone, floats to nine digits, columns by name."""
    order = sorted(range(len(columns)), key=lambda i: columns[i])
    return Rows(Counter(tuple((columns[i], _plain(row[i])) for i in order) for row in rows))


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    if isinstance(value, float):
        # Two engines may order an addition differently; nine significant digits are beyond that.
        return float(f"{value:.9g}")
    return value
