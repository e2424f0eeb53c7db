"""Watermarks must be on the grouped column, before the aggregation, and declared in the spec."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode, is_watermarked_column, items
from drawdown.query.checks.subject import Subject
from drawdown.rows.row_fates import boundary_name

_MARK = "EventTimeWatermark"


def watermarks(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield verdicts on watermarks.

    ``watermark.after-aggregation``, ``watermark.other-column`` (append) and ``watermark.twice`` refuse;
    ``watermark.other-column`` (update) and ``watermark.in-transform`` warn.
    """
    plan = subject.plan
    marks = [node for node in plan.walk() if node.name == _MARK and node.streaming]
    own = [mark for mark in marks if not _is_declared(mark, subject)]
    late = [mark for mark in own if _missed(mark)]
    for mark in late if subject.mode == "append" else ():
        yield _after_aggregation(mark)
    for mark in own:
        if mark not in late or subject.mode != "append":
            yield _twice(mark, subject) if len(marks) > 1 else _in_transform(mark)
    for node in plan.walk():
        below = [each for each in node.walk() if each.name == _MARK]
        if node.name == "Aggregate" and node.streaming and below and subject.mode != "complete":
            grouping = items(node.java.groupingExpressions())
            if not any(is_watermarked_column(each) for each in grouping):
                yield _other_column(node, below[0], subject)


def _is_declared(mark: PlanNode, subject: Subject) -> bool:
    """Whether the watermark is the one that the spec declares, directly on its source.

    A watermark of the transform is on a source that declares none, or above another watermark.
    """
    below = [node for child in mark.children for node in child.walk()]
    if any(node.name == _MARK for node in below):
        return False
    return any(boundary_name(node.java) in subject.pipeline.watermarked_sources for node in below)


def _missed(mark: PlanNode) -> bool:
    """Whether there is an aggregation without a watermark below this watermark."""
    return any(
        node.name == "Aggregate"
        and not any(is_watermarked_column(g) for g in items(node.java.groupingExpressions()))
        for node in mark.walk()
    )


def _column(mark: PlanNode) -> str:
    return str(mark.java.eventTime().name())


def _after_aggregation(mark: PlanNode) -> PlanVerdict:
    column = _column(mark)
    return PlanVerdict(
        "refused",
        "watermark.after-aggregation",
        f"the transform calls withWatermark on `{column}` after the aggregation, where it is too late: append"
        " mode needs a watermark that is defined before the aggregation, on a column that is grouped by",
        do="take withWatermark out of the transform and declare"
        f" `watermark: {{column: {column}, delay: ...}}` at the source",
        about=column,
    )


def _twice(mark: PlanNode, subject: Subject) -> PlanVerdict:
    column, declared = _column(mark), sorted(subject.pipeline.watermarked_sources)
    beside = f"beside the one declared for {' and '.join(declared)}" if declared else "beside another"
    return PlanVerdict(
        "refused",
        "watermark.twice",
        f"the transform calls withWatermark on `{column}` {beside}: Spark takes the least (or greatest) of"
        " all watermarks of a query, and one that is not declared starts at 1970 again in every run",
        do="take withWatermark out of the transform; a watermark is declared once, under"
        " `sources.<name>.watermark`, and follows its column, window(...) and window_time(...)",
        about=column,
    )


def _in_transform(mark: PlanNode) -> PlanVerdict:
    column = _column(mark)
    return PlanVerdict(
        "warning",
        "watermark.in-transform",
        f"the transform calls withWatermark on `{column}` itself: late rows are then counted as late groups"
        " only, not at the source, and max_future cannot keep a row of the far future away from it",
        do=f"where the source has the column, declare `watermark: {{column: {column}, delay: ...}}` there",
        about=column,
    )


def _other_column(aggregate: PlanNode, mark: PlanNode, subject: Subject) -> PlanVerdict:
    column = _column(mark)
    keys = ", ".join(str(each.sql()) for each in items(aggregate.java.groupingExpressions())) or "nothing"
    reaches = column in aggregate.children[0].watermarked_columns
    lost = "" if reaches else ", which does not reach it unchanged"
    do = (
        f"group by `{column}` itself or by a window of it, such as window({column}, '1 hour'); or put the"
        " source's `watermark:` on the grouping column"
    )
    if subject.mode == "append":
        what = (
            f"the aggregation groups by {keys} and the watermark is on `{column}`{lost}: append mode needs"
            " a watermark on a grouping column to know when a group is complete"
        )
        return PlanVerdict("refused", "watermark.other-column", what, do=do, about=column)
    what = (
        f"the aggregation groups by {keys} and the watermark is on `{column}`{lost}: it drops no late row and"
        " frees no state, so every group is kept forever"
    )
    return PlanVerdict("warning", "watermark.other-column", what, do=do, about=column)
