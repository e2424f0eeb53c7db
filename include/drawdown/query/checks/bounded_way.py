"""How a transform runs over bounded data: as a batch query, or over a scratch checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.plan_tree import PlanNode
from drawdown.query.checks.subject import Subject

# From a node of the analysed plan to the call that made it. The first two fail in a batch query (Spark 4.2:
# SparkStrategies.StreamingDeduplicationStrategy and FlatMapGroupsInPandasWithStateStrategy). The timers and
# time to live of the others need the times of a stream.
_ONLY_IN_A_STREAM: Mapping[str, str] = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithStateInPySpark": "transformWithState",
    "TransformWithState": "transformWithState",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
}


def only_in_a_stream(plan: PlanNode) -> list[str]:
    """Return the calls in a plan, streaming or not, that no batch query can run; empty: it can be one."""
    return sorted({_ONLY_IN_A_STREAM[node.name] for node in plan.walk() if node.name in _ONLY_IN_A_STREAM})


def bounded_way(subject: Subject) -> Iterator[PlanVerdict]:
    """Note how this transform runs over bounded data (a replay, a test)."""
    calls = only_in_a_stream(subject.plan)
    if calls:
        yield PlanVerdict(
            "note",
            "replay.scratch-checkpoint",
            f"Backfills and tests run this transform as a stream with a scratch checkpoint: a batch query"
            f" cannot run {', '.join(calls)}",
            about=subject.pipeline.transform,
        )
    else:
        yield PlanVerdict(
            "note",
            "replay.batch",
            "Backfills and tests can run this transform as a single batch query.",
            about=subject.pipeline.transform,
        )
