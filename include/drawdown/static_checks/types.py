"""Types of expressions, only where Spark 4.2 leaves no doubt; ``""`` is: not known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlglot import exp

from drawdown.values.ddl import NotDdlError, columns

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_BOOLEAN = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.In,
    exp.Like, exp.ILike, exp.RegexpLike, exp.Boolean,
)  # fmt: skip
_ALWAYS: dict[type[exp.Expr], str] = {
    exp.Count: "bigint", exp.CountIf: "bigint", exp.ApproxDistinct: "bigint", exp.TimeToStr: "string",
    exp.CurrentTimestamp: "timestamp", exp.CurrentDate: "date", exp.TsOrDsToDate: "date",
    exp.RowNumber: "int", exp.Length: "int",
    **dict.fromkeys(_BOOLEAN, "boolean"),
}  # fmt: skip
_SAME = (exp.Max, exp.Min, exp.First, exp.Last, exp.AnyValue, exp.Paren, exp.Neg)
_OF_TEXT = (exp.Upper, exp.Lower, exp.Trim, exp.Initcap, exp.Reverse)
_TIMES = frozenset({"start", "end"})

ColumnType = Callable[[exp.Column], str]


def type_of(node: exp.Expr, column: ColumnType) -> str:
    """Spark's simpleString of an expression's type, or ``""``.

    Args:
        column: the type of a column.
    """
    if isinstance(node, exp.Column):
        return _plain(column(node)) or _of_a_window(node, column)
    if type(node) in _ALWAYS:
        return _ALWAYS[type(node)]
    if isinstance(node, exp.Cast):
        return _plain(_written(node.to))
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, _SAME):
        return type_of(node.this, column)
    if isinstance(node, exp.Filter | exp.Window):
        return type_of(node.this, column)
    if isinstance(node, exp.Coalesce):
        return _one(type_of(each, column) for each in (node.this, *node.expressions))
    if isinstance(node, _OF_TEXT):
        return "string" if type_of(node.this, column) == "string" else ""
    if isinstance(node, exp.Concat | exp.DPipe):
        parts = [node.left, node.right] if isinstance(node, exp.DPipe) else node.expressions
        return "string" if {type_of(each, column) for each in parts} == {"string"} else ""
    return _computed(node, column)


def _computed(node: exp.Expr, column: ColumnType) -> str:
    if isinstance(node, exp.Sum):
        of = type_of(node.this, column)
        return "bigint" if of in _INTEGERS else "double" if of in _FLOATS else ""
    if isinstance(node, exp.Avg):
        return "double" if type_of(node.this, column) in (*_INTEGERS, *_FLOATS) else ""
    if isinstance(node, exp.Case):
        branches = [each.args["true"] for each in node.args["ifs"]]
        default = node.args.get("default")
        return _one(type_of(each, column) for each in [*branches, *([default] if default else [])])
    if isinstance(node, exp.If):
        branches = [node.args["true"], *([node.args["false"]] if node.args.get("false") else [])]
        return _one(type_of(each, column) for each in branches)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        return _arithmetic(node, type_of(node.left, column), type_of(node.right, column))
    return ""


def _arithmetic(node: exp.Expr, left: str, right: str) -> str:
    sides = {left, right}
    if not all(each in (*_INTEGERS, *_FLOATS) for each in sides):
        return ""
    if "double" in sides or isinstance(node, exp.Div):
        return "double"
    if sides <= set(_INTEGERS):
        return max(sides, key=_INTEGERS.index)
    return ""


def _literal(node: exp.Literal) -> str:
    if node.is_string:
        return "string"
    if not node.is_int:
        return ""
    size = abs(int(node.name))
    return "int" if size < 2**31 else "bigint" if size < 2**63 else ""


def _of_a_window(node: exp.Column, column: ColumnType) -> str:
    """``window.start`` of ``GROUP BY window(time, ...)`` is of the type of the time."""
    select = node.find_ancestor(exp.Select)
    name = node.table.lower()
    if select is None or node.name.lower() not in _TIMES or name not in ("window", "session_window"):
        return ""
    made = [each for each in select.find_all(exp.Anonymous) if each.name.lower() == name and each.expressions]
    found = _one(type_of(each.expressions[0], column) for each in made)
    return found if found in ("timestamp", "timestamp_ntz") else ""


def _one(types: Iterable[str]) -> str:
    """The type that all have."""
    found = set(types)
    return found.pop() if len(found) == 1 else ""


def _written(kind: exp.DataType) -> str:
    try:
        return columns(f"x {kind.sql('spark')}")[0].type
    except NotDdlError:
        return ""


def _plain(kind: str) -> str:
    """Types with text in them are left out: CHAR, VARCHAR and collations become others on their way."""
    return "" if "char(" in kind or "collate" in kind else kind
