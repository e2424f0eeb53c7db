"""Where a column of an optimised plan comes from: its expression, down to the columns of the sources.

Unlike meaning.py, which reads the analysed plan, this follows each branch of a union, what a generator
(``explode``) makes of a column, and columns that the optimiser has made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drawdown.query.checks.plan_tree import Node, items
from drawdown.query.state.meaning import in_words
from drawdown.rows.boundary import boundary_name

_NUMBER = re.compile(r"#\d+L?(-T\d+ms)?")
# Seeds are drawn when a query is analysed, so they differ from run to run.
_SEED = re.compile(r"\b(randn?|uuid|shuffle)\((.*?)(, )?(Some\(-?\d+\)|-?\d{10,})\)")
_COMMUTATIVE = frozenset({"Add", "Multiply", "And", "Or", "EqualTo", "EqualNullSafe"})
_SIGNS = (" + ", " * ", " AND ", " OR ", " = ", " <=> ")
_Columns = dict[int, str]


@dataclass
class ColumnLineage:
    """The columns of an optimised plan, by node.

    Attributes:
        analysed: the plan before it was optimised: it still shows windows as they are written.
    """

    analysed: Node
    _windows: _Columns = field(init=False)
    _static: _Columns = field(init=False)
    _known: dict[int, _Columns] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._windows = dict(_windows(self.analysed))
        self._static = dict(_static_columns(self.analysed))

    def below(self, node: Node) -> InputLineage:
        """The columns that a node works on."""
        columns: _Columns = {}
        for child in node.children:
            columns |= self._columns(child)
        return InputLineage(columns)

    def _columns(self, node: Node) -> _Columns:
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = self._find_columns(node)
        return known

    def _find_columns(self, node: Node) -> _Columns:
        output = items(node.java.output())
        source = boundary_name(node.java)
        if source is not None:
            return {_id(a): f"{source}.{a.name()}" for a in output}
        if node.name == "Union":
            return self._of_union(node)
        below = self.below(node)
        found = dict(below.columns)
        for number, text in _defined(node, below):
            found[number] = self._windows.get(number, text)
        return {
            number: found.get(number) or self._static.get(number) or str(attribute.name())
            for number, attribute in ((_id(a), a) for a in output)
        }

    def _of_union(self, node: Node) -> _Columns:
        """A column of a union is one of several; the order of the branches makes no difference."""
        branches = [
            [self._columns(child)[_id(a)] for a in items(child.java.output())]
            for child in node.children
            if not _is_unasked(child)
        ]
        together = zip(*sorted(branches), strict=True)
        return {
            _id(a): texts[0] if len(set(texts)) == 1 else f"({' or '.join(texts)})"
            for a, texts in zip(items(node.java.output()), together, strict=True)
        }


@dataclass(frozen=True)
class InputLineage:
    """The columns that one node works on; with the methods of meaning.Meaning."""

    columns: _Columns

    def of(self, expression: Any) -> str:
        """An expression (Java Expression) in words of the sources' columns; ``b + a`` as ``a + b``."""
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
            text = self.columns.get(_id(attribute), str(attribute.name())).join(parts)
        return _SEED.sub(r"\1(\2)", _NUMBER.sub("", text))

    def typed(self, expression: Any) -> str:
        """The same with its type, and whether it is never NULL: Spark compares both with what is in state."""
        text = self.of(expression)
        if text.startswith(("window(", "session_window(")):
            return text
        text = f"{text} {expression.dataType().simpleString()}"
        return text if expression.nullable() else f"{text} not null"


def _defined(node: Node, below: InputLineage) -> Iterator[tuple[int, str]]:
    """Number and text of each column that a node computes."""
    java = node.java
    if node.name in ("Project", "Aggregate"):
        computed = items(java.projectList() if node.name == "Project" else java.aggregateExpressions())
        for each in computed:
            if each.getClass().getSimpleName() == "Alias":
                yield _id(each), below.of(each.child())
    elif node.name == "Expand":
        # A sliding window is an Expand: one projection for each window that a row falls into.
        first = items(java.projections().apply(0))
        for attribute, each in zip(items(java.output()), first, strict=True):
            if not attribute.semanticEquals(each):
                yield _id(attribute), below.of(each)
    elif node.name == "Generate":
        made = below.of(java.generator())
        for nth, attribute in enumerate(items(java.generatorOutput())):
            yield _id(attribute), f"{made}[{nth}]"
    elif node.name in ("BatchEvalPython", "ArrowEvalPython"):
        for attribute, function in zip(items(java.resultAttrs()), items(java.udfs()), strict=True):
            yield _id(attribute), below.of(function)
    elif node.name == "Join":
        return
    else:
        passed = set(below.columns)
        for attribute in items(java.output()) if node.children else []:
            if _id(attribute) not in passed:
                yield _id(attribute), f"{node.name}.{attribute.name()}"


def _is_unasked(branch: Node) -> bool:
    """Whether a branch of a union is the product's own: carriers, or replayed rows of the quarantine."""
    return branch.streaming and not any(boundary_name(node.java) for node in branch.walk())


def _windows(analysed: Node) -> Iterator[tuple[int, str]]:
    """Windows in the words that the user has written, by the number of their column."""
    lineage = None
    for node in analysed.walk():
        if node.name not in ("Project", "Expand"):
            continue
        if boundary_name(node.java) is not None:
            continue
        if node.name == "Project":
            pairs = [(_id(e), e.child()) for e in items(node.java.projectList()) if _is_alias(e)]
        else:
            first = items(node.java.projections().apply(0))
            pairs = [(_id(a), e) for a, e in zip(items(node.java.output()), first, strict=True)]
        for number, expression in pairs:
            if "precisetimestampconversion" not in str(expression.toString()):
                continue
            lineage = lineage or _Analysed()
            text = lineage.below(node).of(expression)
            if text.startswith(("window(", "session_window(")):
                yield number, text


def _static_columns(analysed: Node) -> Iterator[tuple[int, str]]:
    """Columns of static sources, by the name under which the transform reads them."""
    for node in analysed.walk():
        if node.name == "SubqueryAlias" and not node.streaming:
            below = node.children[0]
            while below.name in ("View", "SubqueryAlias", "Project") and below.children:
                below = below.children[0]
            if not below.children:
                for a in items(below.java.output()):
                    yield _id(a), f"{node.java.alias()}.{a.name()}"


class _Analysed(ColumnLineage):
    """The columns of the analysed plan itself."""

    def __init__(self) -> None:
        self._windows, self._static, self._known = {}, {}, {}


def _is_alias(expression: Any) -> bool:
    return bool(expression.getClass().getSimpleName() == "Alias")


def _id(named: Any) -> int:
    return int(named.exprId().id())
