"""Session windows: what the guide restricts, and gaps that may leave a row without a session."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import dynamic_gap, is_session, items
from drawdown.query.checks.subject import Subject


def windows(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``window.session-update``, ``window.session-alone``; warnings ``window.dynamic-gap``."""
    for node in subject.plan.walk():
        if node.name == "Aggregate" and node.streaming:
            grouping = items(node.java.groupingExpressions())
            sessions = [each for each in grouping if is_session(each)]
            if sessions and subject.mode == "update":
                yield _in_update_mode()
            if sessions and len(grouping) == len(sessions):
                yield _alone()
        elif dynamic_gap(node) is not None and node.streaming:
            yield _may_have_no_session()


def _in_update_mode() -> PlanVerdict:
    return PlanVerdict(
        "refused",
        "window.session-update",
        "session windows are not supported in update mode: a session that a new row lengthens or joins to"
        " another is a new row, and rows written for the old ones would stay",
        do="set `mode: append`, which emits each session once, when it is closed; or `mode: complete`",
        about="session_window",
    )


def _alone() -> PlanVerdict:
    return PlanVerdict(
        "refused",
        "window.session-alone",
        "a streaming query cannot group by session_window alone: Spark does not support a global aggregation"
        " with a session window",
        do="group by a column too, the one whose activity makes a session; over bounded data, as in a replay,"
        " a session window may stand alone",
        about="session_window",
    )


def _may_have_no_session() -> PlanVerdict:
    return PlanVerdict(
        "warning",
        "window.dynamic-gap",
        "the gap of this session window is computed for each row, and a row whose gap is zero, negative or"
        " NULL belongs to no session: it is dropped, and counted as `sessionless` in the run record",
        do="make the expression return a positive gap for every row, for example a CASE with an ELSE",
        about="session_window",
    )
