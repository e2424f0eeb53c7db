"""The columns of something that SQL reads from: a source, a subquery, the slice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from drawdown.values.column import Column


@dataclass(frozen=True)
class Relation:
    """Columns as far as they are known. ``whole``: there are no others."""

    columns: tuple[Column, ...] = ()
    whole: bool = False

    @classmethod
    def of(cls, columns: Iterable[Column]) -> Relation:
        """All columns of a relation."""
        return cls(tuple(columns), True)

    @property
    def names(self) -> list[str]:
        """The names that can be suggested to a user."""
        return [each.name for each in self.columns if each.name and not each.name.startswith("_dd_")]

    def find(self, name: str) -> Column | None:
        """A column by its name; Spark does not regard case."""
        return next((each for each in self.columns if each.name.lower() == name.lower()), None)

    def renamed(self, names: list[str]) -> Relation:
        """The same columns by other names, as ``AS t(a, b)`` gives them."""
        types = [each.type for each in self.columns] if self.whole and len(names) == len(self.columns) else []
        types = types or [""] * len(names)
        return Relation.of(Column(name, kind) for name, kind in zip(names, types, strict=True))


UNKNOWN = Relation()
