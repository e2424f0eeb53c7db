"""Where a column of an optimised plan comes from: its expression, down to the columns of the sources.

Unlike analysed_origins.py, which reads the analysed plan, this follows each branch of a union, columns
that a generator (``explode``) makes, and columns that the optimiser adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drawdown.query.checks.plan_tree import PlanNode, expr_id, items
from drawdown.query.state.analysed_origins import in_words
from drawdown.rows.row_fates import boundary_name
from drawdown.spark.sql_bounds import MARK, without_bounds

_NUMBER = re.compile(r"#\d+L?(-T\d+ms)?")
# Seeds are drawn when a query is analysed, so they differ from run to run.
_SEED = re.compile(r"\b(randn?|uuid|shuffle)\((.*?)(, )?(Some\(-?\d+\)|-?\d{10,})\)")
_COMMUTATIVE = frozenset({"Add", "Multiply", "And", "Or", "EqualTo", "EqualNullSafe"})
_SIGNS = (" + ", " * ", " AND ", " OR ", " = ", " <=> ")
_Columns = dict[int, str]


@dataclass
class OptimisedOrigins:
    """The columns of an optimised plan, by node.

    Attributes:
        analysed: the plan before optimisation, which still shows windows as they were written.
    """

    analysed: PlanNode
    _windows: _Columns = field(init=False)
    _static: _Columns = field(init=False)
    _known: dict[int, _Columns] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._windows = dict(_windows(self.analysed))
        self._static = dict(_static_columns(self.analysed))

    def below(self, node: PlanNode) -> InputOrigins:
        """Return the columns that a node works on."""
        columns: _Columns = {}
        for child in node.children:
            columns |= self._columns(child)
        return InputOrigins(columns)

    def _columns(self, node: PlanNode) -> _Columns:
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = self._find_columns(node)
        return known

    def _find_columns(self, node: PlanNode) -> _Columns:
        output = items(node.java.output())
        source = boundary_name(node.java)
        if source is not None:
            return {expr_id(a): f"{source}.{a.name()}" for a in output}
        if node.name == "Union":
            return self._of_union(node)
        below = self.below(node)
        found = dict(below.columns)
        for number, text in _defined(node, below):
            found[number] = self._windows.get(number, text)
        return {
            number: found.get(number) or self._static.get(number) or str(attribute.name())
            for number, attribute in ((expr_id(a), a) for a in output)
        }

    def _of_union(self, node: PlanNode) -> _Columns:
        """Return the columns of a union: each is one of several, whatever the order of the branches."""
        branches = [
            [self._columns(child)[expr_id(a)] for a in items(child.java.output())]
            for child in node.children
            if not _is_unasked(child)
        ]
        together = zip(*sorted(branches), strict=True)
        return {
            expr_id(a): texts[0] if len(set(texts)) == 1 else f"({' or '.join(texts)})"
            for a, texts in zip(items(node.java.output()), together, strict=True)
        }


@dataclass(frozen=True)
class InputOrigins:
    """The columns that one node works on; with the methods of AnalysedOrigins."""

    columns: _Columns

    def of(self, expression: Any) -> str:
        """Return an expression (Java Expression) in terms of the sources' columns; ``b + a`` as ``a + b``."""
        text = in_words(self._as_written(expression))
        if MARK in text:
            expression = without_bounds(expression)
            text = in_words(self._as_written(expression))
        if text.startswith(("window(", "session_window(")) or not any(sign in text for sign in _SIGNS):
            return text
        for child in items(expression.children()):
            text = text.replace(self._as_written(child), self.of(child))
        if expression.getClass().getSimpleName() in _COMMUTATIVE:
            sides = sorted(self.of(child) for child in items(expression.children()))
            return f"({f' {expression.symbol()} '.join(sides)})"
        return text

    def _as_written(self, expression: Any) -> str:
        text = str(expression.toString())
        for attribute in items(expression.references().toSeq()):
            parts = re.split(rf"(?<!\w){re.escape(str(attribute.toString()))}(?!\d)", text)
            text = self.columns.get(expr_id(attribute), str(attribute.name())).join(parts)
        return _SEED.sub(r"\1(\2)", _NUMBER.sub("", text))

    def typed(self, expression: Any) -> str:
        """Return the same with its type and whether it can be NULL: Spark compares both with the state."""
        text = self.of(expression)
        if text.startswith(("window(", "session_window(")):
            return text
        text = f"{text} {expression.dataType().simpleString()}"
        return text if expression.nullable() else f"{text} not null"


def _defined(node: PlanNode, below: InputOrigins) -> Iterator[tuple[int, str]]:
    """Yield number and text of each column that a node computes."""
    java = node.java
    if node.name in ("Project", "Aggregate"):
        computed = items(java.projectList() if node.name == "Project" else java.aggregateExpressions())
        for each in computed:
            if each.getClass().getSimpleName() == "Alias":
                yield expr_id(each), below.of(each.child())
    elif node.name == "Expand":
        # A sliding window is an Expand with a projection for each window that a row is in.
        first = items(java.projections().apply(0))
        for attribute, each in zip(items(java.output()), first, strict=True):
            if not attribute.semanticEquals(each):
                yield expr_id(attribute), below.of(each)
    elif node.name == "Generate":
        made = below.of(java.generator())
        for nth, attribute in enumerate(items(java.generatorOutput())):
            yield expr_id(attribute), f"{made}[{nth}]"
    elif node.name in ("BatchEvalPython", "ArrowEvalPython"):
        for attribute, function in zip(items(java.resultAttrs()), items(java.udfs()), strict=True):
            yield expr_id(attribute), below.of(function)
    elif node.name == "Join":
        return
    else:
        passed = set(below.columns)
        for attribute in items(java.output()) if node.children else []:
            if expr_id(attribute) not in passed:
                yield expr_id(attribute), f"{node.name}.{attribute.name()}"


def _is_unasked(branch: PlanNode) -> bool:
    """Whether we added a branch of a union: carriers, or replayed rows of the quarantine."""
    return branch.streaming and not any(boundary_name(node.java) for node in branch.walk())


def _windows(analysed: PlanNode) -> Iterator[tuple[int, str]]:
    """Yield windows as the user wrote them, by the number of their column."""
    origins = None
    for node in analysed.walk():
        if node.name not in ("Project", "Expand"):
            continue
        if boundary_name(node.java) is not None:
            continue
        if node.name == "Project":
            pairs = [(expr_id(e), e.child()) for e in items(node.java.projectList()) if _is_alias(e)]
        else:
            first = items(node.java.projections().apply(0))
            pairs = [(expr_id(a), e) for a, e in zip(items(node.java.output()), first, strict=True)]
        for number, expression in pairs:
            if "precisetimestampconversion" not in str(expression.toString()):
                continue
            origins = origins or _Analysed()
            text = origins.below(node).of(expression)
            if text.startswith(("window(", "session_window(")):
                yield number, text


def _static_columns(analysed: PlanNode) -> Iterator[tuple[int, str]]:
    """Yield columns of static sources, by the name under which the transform reads them."""
    for node in analysed.walk():
        if node.name == "SubqueryAlias" and not node.streaming:
            below = node.children[0]
            while below.name in ("View", "SubqueryAlias", "Project") and below.children:
                below = below.children[0]
            if not below.children:
                for a in items(below.java.output()):
                    yield expr_id(a), f"{node.java.alias()}.{a.name()}"


class _Analysed(OptimisedOrigins):
    """The columns of the analysed plan itself."""

    def __init__(self) -> None:
        self._windows, self._static, self._known = {}, {}, {}


def _is_alias(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "Alias")
