"""Operations that need a whole stream, which has no end; and operations that see only one batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode, items
from drawdown.query.checks.subject import Subject

# For a node of the analysed plan: its name, why a stream cannot have it, what to write instead.
_REFUSED: Mapping[str, tuple[str, str, str]] = {
    "Offset": (
        "OFFSET",
        "the rows to skip would be others in every batch",
        "remove it, or filter by a column that says which rows are meant",
    ),
    "Sample": (
        "sampling",
        "the rows drawn would be others when a batch is replayed",
        "filter by a hash of a key, for example `pmod(hash(id), 100) < 5`",
    ),
    "Window": (
        "a window function over rows (OVER)",
        "the rows before and after one are spread over batches",
        "group by a time window, window(column, '1 hour'), or keep the last row in transformWithState",
    ),
    "Intersect": (
        "INTERSECT",
        "the other rows of both sides may arrive at any time",
        "use an inner join on the columns with a watermark and a time range, and dropDuplicates",
    ),
    "Except": (
        "EXCEPT with a stream on the right",
        "the row that removes one may arrive at any time",
        "use a left outer join with a watermark and a time range, and keep rows whose right side IS NULL",
    ),
}


def unbounded(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield verdicts on operations that do not fit a stream.

    Refusals are ``transform.needs-the-whole-stream``, ``transform.union-with-static`` and
    ``transform.distinct-aggregate``; warnings are ``transform.limit-is-for-ever``,
    ``transform.distinct-for-ever`` and ``transform.groups-of-one-batch``.
    """
    for node in subject.plan.walk():
        if not node.streaming:
            continue
        if node.name in _REFUSED and (node.name != "Except" or node.children[1].streaming):
            yield _whole(*_REFUSED[node.name])
        elif node.name == "Union" and not all(child.streaming for child in node.children):
            yield _union()
        elif node.name == "Aggregate" and _counts_distinct(node):
            yield _distinct_aggregate()
        elif node.name == "GlobalLimit" and subject.mode == "append":
            yield _limit(node)
        elif node.name == "Distinct" and subject.mode != "append" and not node.watermarked_columns:
            yield _distinct(node)
        elif node.name == "FlatMapGroupsInPandas":
            yield _one_batch()


def _whole(what: str, why: str, do: str) -> PlanVerdict:
    return PlanVerdict(
        "refused",
        "transform.needs-the-whole-stream",
        f"{what} is not supported on a stream, which has no end: {why}",
        do=do,
        about=what,
    )


def _union() -> PlanVerdict:
    return PlanVerdict(
        "refused",
        "transform.union-with-static",
        "a union of a stream with a static source is not supported: the static rows would be repeated in"
        " every batch",
        do="make the static source a streaming one (remove `static: true`): its rows are read once",
        about="UNION",
    )


def _distinct_aggregate() -> PlanVerdict:
    return PlanVerdict(
        "refused",
        "transform.distinct-aggregate",
        "distinct aggregations, such as count(DISTINCT x), are not supported on a stream: all values would"
        " have to be kept per group",
        do="use approx_count_distinct(x), or dropDuplicates before the aggregation",
        about="DISTINCT",
    )


def _limit(node: PlanNode) -> PlanVerdict:
    rows = str(node.java.limitExpr().sql())
    return PlanVerdict(
        "warning",
        "transform.limit-is-for-ever",
        f"LIMIT {rows} counts over all runs: after the first {rows} rows that the pipeline ever writes,"
        " no run writes any",
        do="use maxFilesPerTrigger, maxOffsetsPerTrigger or `drain: {max_batches: n}` to bound a run",
        about=f"LIMIT {rows}",
    )


def _distinct(node: PlanNode) -> PlanVerdict:
    columns = ", ".join(str(each.name()) for each in items(node.java.output()))
    return PlanVerdict(
        "warning",
        "transform.distinct-for-ever",
        f"DISTINCT keeps every combination of {columns} that ever came, in all runs: no watermark frees it",
        do="put the watermarked column among the columns, or use dropDuplicatesWithinWatermark",
        about="DISTINCT",
    )


def _one_batch() -> PlanVerdict:
    return PlanVerdict(
        "warning",
        "transform.groups-of-one-batch",
        "applyInPandas sees the rows of one batch only: a group with rows in two batches or runs is"
        " processed twice, each time without the other's rows",
        do="use transformWithState or applyInPandasWithState to keep a group from batch to batch",
        about="applyInPandas",
    )


def _counts_distinct(node: PlanNode) -> bool:
    return any(_has_distinct(each) for each in items(node.java.aggregateExpressions()))


def _has_distinct(expression: Any) -> bool:
    if expression.getClass().getSimpleName() == "AggregateExpression":
        return bool(expression.isDistinct())
    return any(_has_distinct(child) for child in items(expression.children()))
