"""Triggers and asynchronous progress: what a run cannot use when it writes with Spark's own sink.

Sources: Spark's guide on continuous processing and asynchronous progress tracking; for the real-time
trigger RealTimeModeAllowlist (Spark 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator

from drawdown.plan_verdicts import PlanVerdict
from drawdown.query.checks.subject import Subject
from drawdown.spec import Pipeline
from drawdown.spec.scheduling.trigger import is_asynchronous, is_uncounted

_DRAIN_OR_INTERVAL = "drain it, or watch it with the default trigger or an interval"
# For each option that uses Spark's own sink: what it can read and write.
_SOURCES = {"continuous": ("kafka", "rate"), "real-time": ("kafka",), "asynchronous": ("kafka",)}
_SINKS = {
    "continuous": ("kafka", "console", "memory"),
    "real-time": ("kafka", "console"),
    "asynchronous": ("kafka",),
}
# Nodes of a plan that process one row at a time (UnsupportedOperationChecker.checkForContinuous).
_MAP_LIKE = frozenset({
    "Project", "Filter", "MapElements", "MapPartitions", "DeserializeToObject", "SerializeFromObject",
    "SubqueryAlias", "TypedFilter", "View", "StreamingRelationV2", "StreamingRelation", "CollectMetrics",
})  # fmt: skip
_CLOCK = ("current_timestamp(", "current_date(")


def triggers(subject: Subject) -> Iterator[PlanVerdict]:
    """Yield refusals ``trigger.*``; none for a trigger whose batches are counted."""
    pipeline, trigger = subject.pipeline, subject.trigger
    if trigger.kind == "available-now" and is_asynchronous(pipeline):
        yield PlanVerdict(
            "refused",
            "trigger.asynchronous-progress",
            "asynchronous progress tracking cannot be used with the Available-now trigger, which every"
            " scheduled drain has: the offsets of a batch are not written before it runs",
            do="remove asyncProgressTrackingEnabled from the sink's options, after a `drawdown watch"
            f" {pipeline.name}` of two batches with asyncProgressTrackingCheckpointIntervalMs: 0",
            about="asyncProgressTrackingEnabled",
        )
    elif is_uncounted(pipeline, trigger):
        kind = trigger.kind if trigger.kind in _SOURCES else "asynchronous"
        named = f"the trigger {trigger}" if kind == trigger.kind else "asynchronous progress tracking"
        for what, about in _objections(subject, kind):
            yield PlanVerdict(
                "refused", f"trigger.{kind}", f"{named} {what}", do=_DRAIN_OR_INTERVAL, about=about
            )


def _objections(subject: Subject, kind: str) -> Iterator[tuple[str, str]]:
    """Yield what the trigger cannot do, as the end of a sentence, and the part of the pipeline."""
    pipeline = subject.pipeline
    yield from _of_the_spec(pipeline, kind)
    for node in subject.plan.walk():
        if node.streaming and node.name not in _MAP_LIKE:
            yield f"runs map-like operations only (projections and selections), not {node.name}", node.name
        elif kind == "continuous" and any(clock in node.text for clock in _CLOCK):
            yield "has no batch whose time current_timestamp() and current_date() could be", node.name


def _of_the_spec(pipeline: Pipeline, kind: str) -> Iterator[tuple[str, str]]:
    for name, source in pipeline.streaming_sources.items():
        if source.format not in _SOURCES[kind]:
            yield f"reads {' and '.join(_SOURCES[kind])}, not {source.format}", f"source {name}"
        elif source.is_parsed:
            yield "cannot set malformed records aside: say `value: string` and parse in the transform", name
        if source.watermark is not None:
            yield "has no watermarks: its operations keep no state", f"source {name}"
    if pipeline.sink.format not in _SINKS[kind]:
        yield f"writes to {', '.join(_SINKS[kind])}, not to {pipeline.sink.format}", "sink"
    if pipeline.sink.transactional:
        yield "writes with Spark's own sink, at least once: the sink must say so", "delivery: exactly_once"
    if pipeline.quality.rules:
        yield "writes with Spark's own sink: no row rule is checked", "quality.yaml"
    if pipeline.quality.audits:
        yield "writes with Spark's own sink: no expectation is checked", "quality.yaml"
