"""Tables and columns that a query names and that are not there.

Every doubt counts as there: a source whose columns are not known, a struct, a lambda, an alias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope, walk_in_scope

from drawdown.static_checks.outputs import Outputs
from drawdown.static_checks.relation import Relation
from drawdown.static_checks.sql_parsing import GIVES_UP, line_of

# Columns that Spark knows everywhere, and words that are values without being written as calls.
_ALWAYS = frozenset({
    "_metadata", "all", "current_catalog", "current_database", "current_date", "current_schema",
    "current_time", "current_timestamp", "current_timezone", "current_user", "grouping__id",
    "localtimestamp", "session_user", "user",
})  # fmt: skip
_WINDOWS = frozenset({"window", "session_window"})
# After one of these a name means what the operator made, which only Spark works out.
_TOO_MUCH = (exp.Pivot, exp.MatchRecognize)


@dataclass(frozen=True)
class Missing:
    """An unknown table or column: its name, its line from 1, and the known names."""

    kind: str
    name: str
    line: int
    known: tuple[str, ...]


def missing_tables(
    query: exp.Expr, known: Mapping[str, Any], others: frozenset[str] = frozenset()
) -> Iterator[Missing]:
    """Tables that are neither among the known nor made by the query, and all of a database or catalog.

    Args:
        others: names that another check judges, in small letters.
    """
    named = {name.lower() for name in known} | others
    named |= {each.alias_or_name.lower() for each in query.find_all(exp.CTE)}
    for table in query.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or table.find_ancestor(exp.Hint):
            continue
        name = ".".join(part.name for part in table.parts)
        if table.args.get("db") or name.lower() not in named:
            yield Missing("source", name, line_of(table), tuple(known))


def missing_columns(query: exp.Expr, outputs: Outputs) -> list[Missing]:
    """Columns that none of the tables in reach has."""
    if query.find(*_TOO_MUCH) or any(each.args.get("recursive") for each in query.find_all(exp.With)):
        return []
    try:
        blocks = [each for each in traverse_scope(query) if isinstance(each.expression, exp.Select)]
        return [missing for block in blocks for missing in _Block(block, outputs).missing()]
    except GIVES_UP:
        # It is nothing that sqlglot makes sense of.
        return []


class _Block:
    """One SELECT with the names in its reach: of its tables, its own output, and the blocks around it."""

    def __init__(self, scope: Scope, outputs: Outputs) -> None:
        self._scope = scope
        self._outputs = outputs

    def missing(self) -> Iterator[Missing]:
        for column in self._columns():
            if not self._is_there(column):
                yield Missing("column", _written(column), line_of(column), tuple(self._suggested(column)))

    def _columns(self) -> Iterator[exp.Column]:
        for node in walk_in_scope(self._scope.expression):
            if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
                continue
            if node.name and not node.find_ancestor(exp.Hint, exp.Kwarg):
                yield node

    def _is_there(self, column: exp.Column) -> bool:
        parts = [part.name for part in column.parts]
        first = parts[0].lower()
        if len(parts) == 1:
            return not self._all_known or self._plain(first)
        relation = next((block[first] for block in self._in_reach if first in block), None)
        if relation is None or self._plain(first):
            # A struct's field, or what is no table at all.
            return not self._all_known or self._plain(first)
        return len(parts) > 2 or not relation.whole or relation.find(parts[1]) is not None

    @cached_property
    def _blocks(self) -> list[Scope]:
        """This block, and those around it whose columns it may use: a subquery's, not a table's."""
        found, inner = [self._scope], self._scope
        while (outer := inner.parent) is not None:
            if inner.is_subquery or inner.is_udtf or outer.is_udtf:
                found.append(outer)
            inner = outer
        return found

    @cached_property
    def _in_reach(self) -> list[dict[str, Relation]]:
        """By block, innermost first, the relations by their names in small letters."""
        return [
            {
                name.lower(): self._outputs.source(name, each)
                for name, (_, each) in block.selected_sources.items()
            }
            for block in self._blocks
        ]

    @cached_property
    def _all_known(self) -> bool:
        for block, relations in zip(self._blocks, self._in_reach, strict=True):
            read = [block.expression.args.get("from_"), *(block.expression.args.get("joins") or ())]
            read += block.expression.args.get("laterals") or ()
            if len(relations) < sum(each is not None for each in read):
                return False
            if not all(relation.whole for relation in relations.values()):
                return False
        return True

    def _plain(self, name: str) -> bool:
        """Whether a name alone means something here."""
        if name in _ALWAYS or name in self._made:
            return True
        return any(relation.find(name) for block in self._in_reach for relation in block.values())

    @cached_property
    def _made(self) -> frozenset[str]:
        """Names that the blocks make themselves: of their output, of windows of time."""
        return frozenset(name.lower() for block in self._blocks for name in _made_by(block.expression))

    def _suggested(self, column: exp.Column) -> Iterator[str]:
        parts = [part.name for part in column.parts]
        owner = next((block[parts[0].lower()] for block in self._in_reach if parts[0].lower() in block), None)
        if len(parts) > 1 and owner is not None:
            yield from owner.names
            return
        for relation in self._in_reach[0].values():
            yield from relation.names


def _made_by(query: exp.Expr) -> Iterator[str]:
    for each in query.find_all(exp.Alias, exp.Aliases, exp.Anonymous):
        if isinstance(each, exp.Aliases):
            yield from (name.name for name in each.expressions)
        elif isinstance(each, exp.Alias) or each.name.lower() in _WINDOWS:
            yield each.alias if isinstance(each, exp.Alias) else each.name
    for each in query.expressions:
        # ORDER BY knows a field of a struct by its own name once it is in the output.
        if isinstance(each, exp.Dot) or (isinstance(each, exp.Column) and each.table):
            yield each.output_name


def _written(column: exp.Column) -> str:
    return ".".join(part.name for part in column.parts)
