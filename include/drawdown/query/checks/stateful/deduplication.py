"""Deduplication: state that never shrinks, and keys that return in a later run."""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode, is_watermarked, items
from drawdown.query.checks.subject import Subject


def deduplication(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield warnings ``dedup.unbounded-state`` and ``dedup.returning-key``."""
    for node in subject.plan.walk():
        if node.name == "Deduplicate" and node.streaming:
            yield from _unbounded(node)
        elif node.name == "DeduplicateWithinWatermark" and node.streaming:
            yield _returning(node)


def _unbounded(node: PlanNode) -> Iterator[PlanVerdict]:
    keys = items(node.java.keys())
    if any(is_watermarked(key) for key in keys):
        return
    names = ", ".join(str(key.name()) for key in keys)
    under = node.children[0].watermarked_columns
    if under:
        why = f"the watermarked {', '.join(under)} is not among the keys, so the watermark frees no state"
        do = f"add {under[0]} to the keys, or use dropDuplicatesWithinWatermark"
    else:
        why = "without a watermark there is no bound on when a duplicate may arrive"
        do = "give the source a `watermark:` and add its column, or use dropDuplicatesWithinWatermark"
    yield PlanVerdict(
        "warning",
        "dedup.unbounded-state",
        f"the deduplication by {names} keeps every key that ever came: {why}",
        do=do,
        about=names,
    )


def _returning(node: PlanNode) -> PlanVerdict:
    names = ", ".join(str(key.name()) for key in items(node.java.keys()))
    return PlanVerdict(
        "warning",
        "dedup.returning-key",
        f"dropDuplicatesWithinWatermark({names}) may also drop a key that comes back long after the delay,"
        " in a later run: a key is forgotten only after the batch that moves the watermark past it, and a"
        " scheduled run brings the new rows in that very batch; what is removed is counted in the run record",
        do="if a key can come back, put the event time (or its day) into the keys of dropDuplicates, or"
        " keep the keys in transformWithState",
        about=names,
    )
