"""Finds the columns of a query's sources that each of its output columns comes from, by its analysed plan.

Spark numbers each column of a plan, so the way from a source's boundary to the output is exact, whether SQL
or Python wrote the transform. The plan is read as JSON in one call: a call to the JVM for each expression
would take seconds for a large one. Literals, file paths and texts of the plan are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from drawdown.observe.lineage.column_lineage import DIRECT, How, Origin, OutputColumns
from drawdown.query.query import Query
from drawdown.rows.row_fates import FATE, SOURCE_PREFIX
from drawdown.sources.spark_system_columns import SYSTEM_COLUMNS

_OWN = frozenset((*SYSTEM_COLUMNS, FATE))
# Functions after which the value itself is gone.
_MASKING = frozenset(
    ("Md5", "Sha1", "Sha2", "Crc32", "Murmur3Hash", "XxHash64", "HiveHash", "Mask", "Count", "CountIf",
     "HyperLogLogPlusPlus", "ApproxCountDistinct")
)  # fmt: skip
_ROWS: Mapping[str, tuple[str, How]] = {
    "Filter": ("condition", "filter"),
    "Join": ("condition", "join"),
    "AsOfJoin": ("asOfCondition", "join"),
    "LateralJoin": ("condition", "join"),
    "Aggregate": ("groupingExpressions", "group by"),
    "Deduplicate": ("keys", "group by"),
    "DeduplicateWithinWatermark": ("keys", "group by"),
    "Sort": ("order", "sort"),
}
"""By plan node, the field whose columns decide which rows go on, and how."""

_INNER = "drawdown.inner"
"""Field that is added to a subquery's expression: the numbers of its plan's columns."""
_COMPUTES = ("projectList", "aggregateExpressions", "windowExpressions")
_Tree = dict[str, Any]
_Found = dict[Origin, None]
"""An ordered set."""


@dataclass(frozen=True)
class _Column:
    """A column of the plan: Spark's number, its name, its type in JSON."""

    number: int
    name: str
    type: Any


def output_columns(query: Query) -> OutputColumns:
    """Return the columns of a query that has been analysed."""
    plan = _Plan({name: _numbers(frame) for name, frame in query.statics.items()})
    output = plan.read(_tree(json.loads(query.output._jdf.queryExecution().analyzed().toJSON())))
    names = [each.name for each in query.schema.fields]
    by_name = {each.name: plan.origins.get(each.number, {}) for each in output}
    return OutputColumns(
        {name: tuple(sorted(_without_twice(by_name.get(name, {})))) for name in names},
        tuple(sorted(plan.rows)),
        {each.name: each.dataType.simpleString() for each in query.schema.fields},
        {
            name: {each.name: _type_text(each) for each in columns}
            for name, columns in sorted(plan.sources.items())
        },
    )


def _without_twice(found: _Found) -> Iterator[Origin]:
    """Leave out conditions on a column whose value is in the output, too: Spark's windows have them."""
    values = {(each.source, each.column) for each in found if each.how in DIRECT}
    return (each for each in found if each.how != "conditional" or (each.source, each.column) not in values)


def _numbers(frame: DataFrame) -> dict[int, str]:
    """Return the numbers of a frame's columns, with their names."""
    output = frame._jdf.queryExecution().analyzed().output()
    attributes = (output.apply(i) for i in range(output.size()))
    return {int(each.exprId().id()): str(each.name()) for each in attributes}


@dataclass
class _Plan:
    """What is known of a plan's columns while it is read, from the sources up.

    Attributes:
        statics: by static source, the columns of its frame.
        origins: by number of a column.
        rows: origins of columns that decide which rows the output has.
        sources: the columns of each source that was met.
    """

    statics: Mapping[str, Mapping[int, str]]
    origins: dict[int, _Found] = field(default_factory=dict)
    rows: _Found = field(default_factory=dict)
    sources: dict[str, list[_Column]] = field(default_factory=dict)
    _common: dict[int, list[_Column]] = field(default_factory=dict)

    def read(self, node: _Tree) -> list[_Column]:
        """Note everything about a node and what is below it; return the columns of its output, in order."""
        children = [self.read(child) for child in node["children"]]
        self._read_subqueries(node)
        output = self._output(node, children)
        self._note_rows(node)
        if (source := _boundary(node)) is not None or (source := self._static(node, output)) is not None:
            self._note_source(source, output)
        return output

    def _output(self, node: _Tree, children: list[list[_Column]]) -> list[_Column]:
        name, fields = node["name"], node["fields"]
        if name == "CTERelationDef":
            self._common[fields["id"]] = children[0]
        if name == "WithCTE":
            return children[-1]
        if name == "CTERelationRef":
            output = _attributes(fields["output"])
            self._note_same(output, self._common.get(fields["cteId"], []))
            return output
        if name == "Union":
            output = children[0]
            for child in children[1:]:
                self._note_same(output, child)
            return output
        if name == "Expand":
            output = _attributes(fields["output"])
            for projection in fields["projections"]:
                for column, expression in zip(output, map(_tree, projection), strict=False):
                    self._note(column.number, self._from(expression))
            return output
        if name == "Generate":
            made = _attributes(fields["generatorOutput"])
            below = self._from(_tree(fields["generator"]), "transformation")
            for column in made:
                self._note(column.number, below)
            return [*children[0], *made]
        if computed := [_tree(each) for key in _COMPUTES for each in fields.get(key) or ()]:
            made = [self._computed(each) for each in computed]
            return [*children[0], *made] if name == "Window" else made
        return self._other(node, children)

    def _other(self, node: _Tree, children: list[list[_Column]]) -> list[_Column]:
        """Return the output of nodes that pass columns on, or make them in code that Spark cannot see."""
        below = [column for child in children for column in child]
        named = node["fields"].get("output") or node["fields"].get("outputAttrs")
        made = _attributes(named) if isinstance(named, list) else []
        made += [_column(_tree(each)) for each in node["fields"].get("resultAttrs") or ()]
        if not made:
            return below
        # A function over whole rows or groups: each of its columns may come from every column below.
        everything = self._through(below, "transformation")
        known = {column.number for column in below}
        for column in made:
            if column.number not in known:
                self._note(column.number, everything)
        return made

    def _computed(self, expression: _Tree) -> _Column:
        column = _column(expression)
        if expression["name"] == "Alias":
            self._note(column.number, self._from(expression["children"][0]))
        return column

    def _read_subqueries(self, node: _Tree) -> None:
        """Read the plans inside a node's expressions, whose columns then count as the expression's."""
        for expression in _expressions(node["fields"]):
            for each in _walk(expression):
                inner = each["fields"].get("plan")
                if isinstance(inner, list) and inner and isinstance(inner[0], dict) and "class" in inner[0]:
                    each["fields"][_INNER] = [column.number for column in self.read(_tree(inner))]

    def _note_rows(self, node: _Tree) -> None:
        key, how = _ROWS.get(node["name"], ("", "filter"))
        value = node["fields"].get(key)
        for expression in _listed(value):
            self.rows.update(self._from(expression, how))

    def _static(self, node: _Tree, output: list[_Column]) -> str | None:
        """Return the static source that a node is; a name of SQL counts where a relation is used twice."""
        for name, numbers in self.statics.items():
            if output and {column.number for column in output} == set(numbers):
                return name
            if node["name"] == "SubqueryAlias" and node["fields"]["identifier"].get("name") == name:
                return name
        return None

    def _note_source(self, source: str, output: list[_Column]) -> None:
        theirs = [column for column in output if column.name not in _OWN]
        self.sources.setdefault(source, theirs)
        for column in theirs:
            self.origins[column.number] = {Origin(source, column.name, "identity"): None}

    def _note(self, number: int, found: _Found) -> None:
        self.origins.setdefault(number, {}).update(found)

    def _note_same(self, output: list[_Column], below: list[_Column]) -> None:
        for column, same in zip(output, below, strict=False):
            self._note(column.number, dict(self.origins.get(same.number, {})))

    def _through(self, columns: Iterable[_Column], how: How) -> _Found:
        return {
            _joined(each, how, masked=False): None
            for column in columns
            for each in self.origins.get(column.number, {})
        }

    def _from(self, expression: _Tree, how: How = "identity", masked: bool = False) -> _Found:
        """Return the origins of an expression that is used in this way."""
        name = expression["name"]
        if name == "AttributeReference":
            below = self.origins.get(_column(expression).number, {})
            return {_joined(each, how, masked): None for each in below}
        masked = masked or name in _MASKING
        if how in DIRECT and name not in ("Alias", "EventTimeWatermark"):
            aggregated = how == "aggregation" or name == "AggregateExpression"
            how = "aggregation" if aggregated else "transformation"
        found: _Found = {}
        for number in expression["fields"].get(_INNER, ()):
            for each in self.origins.get(number, {}):
                found[_joined(each, how, masked)] = None
        for at, child in enumerate(expression["children"]):
            found.update(self._from(child, _way(expression, at, how), masked))
        return found


def _way(expression: _Tree, at: int, how: How) -> How:
    """Return how the child at this place is used."""
    name, count = expression["name"], len(expression["children"])
    if how not in DIRECT:
        return how
    if name == "WindowSpecDefinition":
        return "window"
    if name == "CaseWhen" and at % 2 == 0 and at != count - count % 2:
        return "conditional"
    if name == "If" and at == 0:
        return "conditional"
    return how


def _joined(origin: Origin, how: How, masked: bool) -> Origin:
    """Return an origin of a column that is itself used in this way."""
    inner = origin.how
    if inner not in DIRECT or how == "identity":
        both = inner
    elif how not in DIRECT or inner == "identity":
        both = how
    else:
        both = "aggregation" if "aggregation" in (inner, how) else "transformation"
    return Origin(origin.source, origin.column, both, origin.masked or masked)


def _boundary(node: _Tree) -> str | None:
    name = str(node["fields"].get("name", "")) if node["name"] == "CollectMetrics" else ""
    return name.removeprefix(SOURCE_PREFIX) if name.startswith(SOURCE_PREFIX) else None


# Spark's JSON of a plan: all nodes of a tree in one list, parents first, each with its number of children.


def _tree(nodes: list[dict[str, Any]]) -> _Tree:
    """Return a list of nodes as a tree of ``name``, ``fields`` and ``children``."""
    rest = iter(nodes)

    def one() -> _Tree:
        fields = next(rest)
        children = [one() for _ in range(fields["num-children"])]
        return {"name": fields["class"].rpartition(".")[2], "fields": fields, "children": children}

    return one()


def _is_tree(value: Any) -> bool:
    return bool(
        isinstance(value, list) and value and isinstance(value[0], dict) and "num-children" in value[0]
    )


def _listed(value: Any) -> list[_Tree]:
    """Return the expressions of a field, which holds one or several."""
    if _is_tree(value):
        return [_tree(value)]
    return [_tree(each) for each in value if _is_tree(each)] if isinstance(value, list) else []


def _expressions(fields: dict[str, Any]) -> Iterator[_Tree]:
    """Yield the expressions of a node; trees that are made of them later share their fields."""
    for value in list(fields.values()):
        yield from _listed(value)


def _walk(expression: _Tree) -> Iterator[_Tree]:
    yield expression
    for child in expression["children"]:
        yield from _walk(child)


def _column(expression: _Tree) -> _Column:
    fields = expression["fields"]
    return _Column(int(fields["exprId"]["id"]), str(fields["name"]), fields.get("dataType"))


def _attributes(value: Any) -> list[_Column]:
    return [_column(each) for each in _listed(value)]


def _type_text(column: _Column) -> str:
    fields = [{"name": "c", "type": column.type, "nullable": True, "metadata": {}}]
    return str(StructType.fromJson({"fields": fields}).fields[0].dataType.simpleString())
