"""Joins: the support matrix of Spark's guide, as verdicts that name the side where something is missing.

Spark's own checker says that a watermark or a range condition is missing, but not where. It allows a case
that the guide forbids because results would be wrong (an equality of event times with the watermark on the
wrong side), and it does not check for state that never shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.stateful.join_sides import Join, JoinSide
from drawdown.query.checks.subject import Subject
from drawdown.spark.gateway import jvm_of

_CONSTRAINT = (
    "a time range in the join condition (for example `r.at BETWEEN l.at AND l.at + INTERVAL 1 HOUR`) or"
    " equal event-time windows"
)
_UNKNOWABLE = "unmatched rows are known only when the stream ends, and a stream does not end"
_STREAM_STATIC = {
    "RIGHT OUTER": "use LEFT OUTER, which keeps every row of the stream",
    "FULL OUTER": "use LEFT OUTER, which keeps every row of the stream",
}
_STATIC_STREAM = {
    "LEFT OUTER": "use RIGHT OUTER, which keeps every row of the stream",
    "FULL OUTER": "use RIGHT OUTER, which keeps every row of the stream",
    "LEFT SEMI": "use an inner join and drop the duplicates of the static side's key",
    "LEFT ANTI": "let the pipeline write the stream's keys, and look for the missing ones in its table",
}
# The joins of two streams that Spark can run, and the sides whose rows are emitted (or kept) unmatched.
_UNMATCHED = {
    "INNER": (),
    "CROSS": (),
    "LEFT OUTER": ("left",),
    "LEFT SEMI": ("left",),
    "RIGHT OUTER": ("right",),
    "FULL OUTER": ("left", "right"),
}


def joins(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield verdicts on joins.

    ``join.static``, ``join.kind``, ``join.append-only``, ``join.constraint`` and ``join.equality`` refuse;
    ``join.unbounded-state`` and ``join.one-watermark`` warn.
    """
    found = list(_of_each(subject))
    yield from found
    if all(verdict.level != "refused" for verdict in found):
        yield from _without_equality(subject)


def _without_equality(subject: Subject) -> Iterator[PlanVerdict]:
    """Refuse a join of two streams without an equality.

    Spark refuses it only when the query starts, by the optimised plan, where an equality in WHERE is part of
    the join (StreamingJoinStrategy, Spark 4.2).
    """
    for node in subject.optimized.walk():
        if node.name != "Join":
            continue
        join = Join(node, subject.session._jvm)
        if join.left.node.streaming and join.right.node.streaming and not join.has_equality:
            yield PlanVerdict(
                "refused",
                "join.equality",
                f"a {join.kind} join of two streams needs an equality between a column of {join.left.label}"
                f" and one of {join.right.label}: Spark keeps the rows that wait for a match by it",
                do="add an equality to the join condition (such as `l.id = r.id`), or make one side a static"
                " source",
                about=join.kind,
            )


def _of_each(subject: Subject) -> Iterator[PlanVerdict]:
    for node in subject.plan.walk():
        if node.name == "Join" and node.streaming:
            join = Join(node, jvm_of(subject.session))
            if join.left.node.streaming and join.right.node.streaming:
                yield from _two_streams(join, subject)
            else:
                yield from _with_static(join)


def _with_static(join: Join) -> Iterator[PlanVerdict]:
    matrix = _STREAM_STATIC if join.left.node.streaming else _STATIC_STREAM
    if join.kind in matrix:
        order = "a stream with a static" if join.left.node.streaming else "a static with a stream"
        keeps = "both sides" if join.kind == "FULL OUTER" else "the static side"
        yield PlanVerdict(
            "refused",
            "join.static",
            f"a {join.kind} join of {order} source is not supported: it asks for rows of {keeps}, and of the"
            f" static one {_UNKNOWABLE}",
            do=f"{matrix[join.kind]}; or make the static source a stream",
            about=join.kind,
        )


def _two_streams(join: Join, subject: Subject) -> Iterator[PlanVerdict]:
    between = f"{join.kind} join of two streams"
    if subject.mode != "append":
        yield PlanVerdict(
            "refused",
            "join.append-only",
            f"a {between} is supported in append mode only, not in {subject.mode} mode",
            do="set `mode: append`; an aggregation behind the join then needs a watermark, or a separate"
            " pipeline that reads this one's table",
            about=join.kind,
        )
    elif join.kind not in _UNMATCHED:
        yield PlanVerdict(
            "refused",
            "join.kind",
            f"a {between} is not supported: {join.right.label} is a stream, so a match can always still"
            " arrive",
            do="use LEFT OUTER with a watermark and a time constraint, and keep rows whose right key IS NULL",
            about=join.kind,
        )
    elif refusal := _constraint(join, subject):
        yield refusal
    else:
        yield from _warnings(join, subject)


def _constraint(join: Join, subject: Subject) -> PlanVerdict | None:
    """Refuse a join that emits or drops unmatched rows without a watermark of the other side to pass them."""
    waiting = [side for side in (join.left, join.right) if side.word in _UNMATCHED[join.kind]]
    if not waiting or any(join.frees(side) for side in waiting):
        return None
    rows = " or of ".join(side.label for side in waiting)
    return PlanVerdict(
        "refused",
        "join.constraint",
        f"a {join.kind} join of two streams must know when a row of {rows} will find no match any more,"
        f" and cannot: {_lacks(join, waiting, subject)}",
        do=f"{_needs(join, waiting, subject, ' or ')}, or use an inner join",
        about=join.kind,
    )


def _warnings(join: Join, subject: Subject) -> Iterator[PlanVerdict]:
    kept = [side for side in (join.left, join.right) if not join.frees(side)]
    if len(join.watermarked_keys) == 1:
        (side,) = join.watermarked_keys
        late = join.other(side)
        yield PlanVerdict(
            "warning",
            "join.one-watermark",
            f"the watermark of {side.label} alone frees the state of both sides of this {join.kind} join:"
            f" later rows of {late.label} lose their match, and no count shows it",
            do=f"give a `watermark:` to {late.label} too",
            about=join.kind,
        )
    elif kept:
        rows = " and of ".join(side.label for side in kept)
        unmatched = any(side.word in _UNMATCHED[join.kind] for side in kept)
        never = ", and those without a match are never emitted" if unmatched else ""
        marked = any(side.node.watermarked_columns for side in (join.left, join.right))
        alone = "; a watermark alone frees no state" if marked else ""
        yield PlanVerdict(
            "warning",
            "join.unbounded-state",
            f"this {join.kind} join keeps every row of {rows} forever{never}:"
            f" {_lacks(join, kept, subject)}{alone}",
            do=_needs(join, kept, subject, " and "),
            about=join.kind,
        )


def _lacks(join: Join, sides: Sequence[JoinSide], subject: Subject) -> str:
    """Return what is missing to free the rows of these sides, in the words of the support matrix."""
    missing = [
        f"{bare.label} has no watermark{_lost_on_the_way(bare, subject)}" for bare in _bare(join, sides)
    ]
    if not join.compares_times():
        missing.append("the join condition has no time constraint between the two sides")
    if not missing:
        missing = [
            f"no time constraint says how old a row of {side.label} may be against the watermarked"
            f" {', '.join(join.other(side).node.watermarked_columns)} of {join.other(side).label}"
            for side in sides
        ]
    return ", ".join(missing)


def _bare(join: Join, sides: Sequence[JoinSide]) -> list[JoinSide]:
    """Return the sides that need a watermark so that the rows of these are freed.

    That is the other side of each; where an event-time range is to free a side, that side as well.
    """
    needed = [join.other(side) for side in sides]
    needed += [side for side in sides if join.bounds(side) and side not in needed]
    return [side for side in needed if not side.node.watermarked_columns]


def _needs(join: Join, sides: Sequence[JoinSide], subject: Subject, conjunction: str) -> str:
    bare = _bare(join, sides)
    needs = []
    if bare:
        lost = any(_lost_on_the_way(side, subject) for side in bare)
        what = "let the watermarked column through, unchanged, on" if lost else "give a `watermark:` to"
        needs.append(f"{what} {conjunction.join(side.label for side in bare)}")
    if not join.compares_times():
        needs.append(f"add {_CONSTRAINT}")
    elif not needs:
        needs.append(f"bound both ends: {_CONSTRAINT}, on the watermarked columns, in days or shorter units")
    return " and ".join(needs)


def _lost_on_the_way(side: JoinSide, subject: Subject) -> str:
    """Return a hint: a watermark belongs to its column, and a computed or dropped column has none."""
    declared = [
        f"{name}.{mark.column}" for name in side.sources if (mark := subject.pipeline.sources[name].watermark)
    ]
    return f" (the one on {', '.join(declared)} does not reach the join)" if declared else ""
