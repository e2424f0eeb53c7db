"""Which way a transform runs over bounded data: as a batch query, or over a scratch checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawdown.engine.examine.plan_tree import Node
from drawdown.engine.examine.subject import Subject
from drawdown.plan.verdicts import PlanVerdict

# Node of the analysed plan to the call that made it. The first two throw in a batch query (Spark 4.2:
# SparkStrategies.StreamingDeduplicationStrategy and FlatMapGroupsInPandasWithStateStrategy). The others'
# timers and time to live need the times of a stream.
_ONLY_IN_A_STREAM: Mapping[str, str] = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState",
    "TransformWithStateInPySpark": "transformWithState",
    "TransformWithState": "transformWithState",
    "FlatMapGroupsWithState": "flatMapGroupsWithState",
}


def only_in_a_stream(plan: Node) -> list[str]:
    """The calls in a plan, streaming or not, that no batch query can run; empty when it may run as one."""
    return sorted({_ONLY_IN_A_STREAM[node.name] for node in plan.walk() if node.name in _ONLY_IN_A_STREAM})


def bounded_way(subject: Subject) -> Iterator[PlanVerdict]:
    """One note: how this transform runs over bounded data (a replay, a test)."""
    calls = only_in_a_stream(subject.plan)
    if calls:
        yield PlanVerdict(
            "note",
            "replay.scratch-checkpoint",
            f"over bounded data it runs as a stream with a scratch checkpoint: no batch query can run"
            f" {', '.join(calls)}",
            about=subject.pipeline.transform,
        )
    else:
        yield PlanVerdict(
            "note",
            "replay.batch",
            "over bounded data it runs as one batch query: every operator of the transform can",
            about=subject.pipeline.transform,
        )
