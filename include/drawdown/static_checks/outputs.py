"""The columns that a query gives, and their types where they are certain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, build_scope

from drawdown.static_checks.relation import UNKNOWN, Relation
from drawdown.static_checks.sql_parsing import GIVES_UP
from drawdown.static_checks.types import type_of
from drawdown.values.column import Column

_UNNAMED = Column("", "")
_MOST_COLUMNS = 10_000
"""A query with more is left to Spark: `SELECT *, *` doubles them with every level."""


class Outputs:
    """Of a query over known relations."""

    def __init__(self, known: Mapping[str, Relation]) -> None:
        self._known = {name.lower(): relation for name, relation in known.items()}
        self._found: dict[int, tuple[Scope, Relation]] = {}

    def of_query(self, query: exp.Expr) -> Relation:
        """The columns of the whole query; not whole when Spark names some itself, or when in doubt."""
        if query.find(exp.Pivot):
            return UNKNOWN
        try:
            scope = build_scope(query)
            return UNKNOWN if scope is None else self._of(scope)
        except GIVES_UP:
            return UNKNOWN

    def source(self, name: str, source: Any) -> Relation:
        """The columns of one source of a block, as sqlglot's Scope has it."""
        if isinstance(source, Scope):
            return self._of_block(source)
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            return self._aliased(source)
        if source.args.get("db") or source.args.get("pivots") or source.args.get("joins"):
            return UNKNOWN
        found = self._known.get(source.name.lower(), UNKNOWN)
        names = _alias_columns(source)
        return found.renamed(names) if names else found

    def _aliased(self, source: Any) -> Relation:
        names = _alias_columns(source) if isinstance(source, exp.Expr) else []
        return UNKNOWN.renamed(names) if names else UNKNOWN

    def _of_block(self, scope: Scope) -> Relation:
        if scope.is_udtf:
            return UNKNOWN.renamed(scope.outer_columns) if scope.outer_columns else UNKNOWN
        found = self._of(scope)
        return found.renamed(scope.outer_columns) if scope.outer_columns else found

    def _of(self, scope: Scope) -> Relation:
        # The scope is kept, so that its id stays its own.
        if id(scope) not in self._found:
            self._found[id(scope)] = (scope, self._read(scope))
        return self._found[id(scope)][1]

    def _read(self, scope: Scope) -> Relation:
        query = scope.expression
        if isinstance(query, exp.SetOperation):
            return self._of_both(scope, query)
        if not isinstance(query, exp.Select) or query.args.get("operation_modifiers"):
            return UNKNOWN
        columns: list[Column] = []
        whole = True
        for each in query.expressions:
            found = self._projected(scope, each)
            columns += found.columns
            whole = whole and found.whole
            if len(columns) > _MOST_COLUMNS:
                return UNKNOWN
        return Relation(tuple(columns), whole)

    def _of_both(self, scope: Scope, query: exp.SetOperation) -> Relation:
        sides = scope.set_operation_scopes
        if query.args.get("by_name") or len(sides) != 2:
            return UNKNOWN
        left, right = (self._of(side) for side in sides)
        if not (left.whole and right.whole) or len(left.columns) != len(right.columns):
            return UNKNOWN
        return Relation.of(
            Column(one.name, one.type if one.type == other.type else "", one.line)
            for one, other in zip(left.columns, right.columns, strict=True)
        )

    def _projected(self, scope: Scope, each: exp.Expr) -> Relation:
        if isinstance(each, exp.Star):
            return self._starred(scope, each)
        if isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
            source = self._named_source(scope, each.table)
            return UNKNOWN if source is None or each.this.args.get("except_") else source
        line = each.meta.get("line") or next((n.meta["line"] for n in each.walk() if "line" in n.meta), 1)
        if isinstance(each, exp.Alias):
            return Relation.of([Column(each.alias, type_of(each.this, self._types(scope)), int(line))])
        if isinstance(each, exp.Column):
            return Relation.of([Column(each.name, type_of(each, self._types(scope)), int(line))])
        return Relation((_UNNAMED,), False)

    def _starred(self, scope: Scope, star: exp.Star) -> Relation:
        query = scope.expression
        joins = query.args.get("joins") or []
        if star.args.get("replace") or star.args.get("rename") or query.args.get("laterals"):
            return UNKNOWN
        if any(not _plain_join(join) for join in joins):
            return UNKNOWN
        relations = [self.source(name, each) for name, each in scope.sources.items() if _is_read(query, name)]
        if not relations or len(relations) != 1 + len(joins) or not all(each.whole for each in relations):
            return UNKNOWN
        dropped = {each.name.lower() for each in star.args.get("except_") or ()}
        shown = [c for relation in relations for c in relation.columns if c.name.lower() not in dropped]
        return Relation.of(shown)

    def _named_source(self, scope: Scope, name: str) -> Relation | None:
        return next(
            (self.source(key, each) for key, each in scope.sources.items() if key.lower() == name.lower()),
            None,
        )

    def _types(self, scope: Scope) -> Any:
        """What gives a column's type: only of a column that one relation alone has."""

        def of(column: exp.Column) -> str:
            parts = [part.name for part in column.parts]
            sources = {name.lower(): self.source(name, each) for name, each in scope.sources.items()}
            if len(parts) == 2 and parts[0].lower() in sources:
                found = sources[parts[0].lower()].find(parts[1])
                return found.type if found else ""
            if len(parts) != 1 or not all(each.whole for each in sources.values()):
                return ""
            having = [found for each in sources.values() if (found := each.find(parts[0]))]
            return having[0].type if len(having) == 1 else ""

        return of


def _alias_columns(source: exp.Expr) -> list[str]:
    return list(source.alias_column_names) if hasattr(source, "alias_column_names") else []


def _plain_join(join: exp.Join) -> bool:
    """Whether a join gives the columns of both sides, each once."""
    odd = join.args.get("using") or join.method or join.kind.upper() in ("SEMI", "ANTI")
    return not odd and join.side.upper() not in ("SEMI", "ANTI")


def _is_read(query: exp.Expr, name: str) -> bool:
    """Whether a source of a scope is read in this block, and not only defined for it."""
    return name.lower() in set(_read_names(query))


def _read_names(query: exp.Expr) -> Iterator[str]:
    clauses = [query.args.get("from_"), *(query.args.get("joins") or ())]
    for clause in clauses:
        if clause is not None and isinstance(clause.this, exp.Expr):
            yield clause.this.alias_or_name.lower()
