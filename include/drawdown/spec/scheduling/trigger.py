"""Triggers: when a query's micro-batches start. A schedule has Available-now; `watch` has the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from pydantic_core import PydanticCustomError

from drawdown.errors import SpecError
from drawdown.spec.pipeline import Pipeline
from drawdown.values.duration import Duration

Kind = Literal["available-now", "default", "interval", "continuous", "real-time"]

# Spark's own bound: spark.sql.streaming.realTimeMode.minBatchDuration, Spark 4.2.
_SHORTEST_REAL_TIME = timedelta(seconds=5)
_FORMS = 'default, "10 seconds", "continuous: 1 second" or "real-time: 5 minutes"'


@dataclass(frozen=True)
class Trigger:
    """One of Spark's triggers; ``interval`` is None where it has none.

    ``default`` starts a batch as soon as the one before has ended, ``interval`` at fixed times;
    ``continuous`` has no batches and records offsets at every interval; ``real-time`` has batches as long as
    the interval, whose rows are written as they arrive.
    """

    kind: Kind
    interval: Duration | None = None

    @property
    def arguments(self) -> dict[str, bool | str]:
        """Keywords for DataStreamWriter.trigger; none for Spark's default."""
        if self.kind == "available-now":
            return {"availableNow": True}
        if self.interval is None:
            return {}
        names = {"interval": "processingTime", "continuous": "continuous", "real-time": "realTime"}
        return {names[self.kind]: self.interval.text}

    def __str__(self) -> str:
        if self.interval is None:
            return self.kind
        return self.interval.text if self.kind == "interval" else f"{self.kind}: {self.interval}"


AVAILABLE_NOW = Trigger("available-now")


def is_asynchronous(pipeline: Pipeline) -> bool:
    """Whether the sink's options ask for asynchronous progress tracking."""
    return pipeline.sink.options.get("asyncProgressTrackingEnabled") is True


def is_uncounted(pipeline: Pipeline, trigger: Trigger) -> bool:
    """Whether Spark's own sink writes, so that nothing is counted or checked per batch."""
    return trigger.kind in ("continuous", "real-time") or is_asynchronous(pipeline)


def parse_trigger(text: str, pipeline: str = "NAME") -> Trigger:
    """A trigger of `watch`: ``default``, an interval, or ``continuous:`` or ``real-time:`` and one.

    Raises:
        SpecError: ``trigger.once``, ``trigger.available-now``, ``trigger.unknown`` or ``trigger.interval``.
    """
    kind, colon, interval = (part.strip() for part in text.partition(":"))
    if text.strip() == "default":
        return Trigger("default")
    if text.strip() == "once":
        raise SpecError(
            "trigger.once",
            "the trigger `once` is deprecated: it reads everything in one batch, ignores rate limits, and"
            " has no later batch in which the watermark could close windows",
            do=f"use Available-now, as every scheduled drain does: `drawdown run {pipeline}`",
        )
    if text.strip() == "available-now":
        raise SpecError(
            "trigger.available-now",
            "Available-now ends when the backlog is empty: there is nothing to watch",
            do=f"`drawdown run {pipeline}`",
        )
    if colon and kind not in ("continuous", "real-time"):
        raise _unknown(text)
    try:
        length = Duration.parse(interval if colon else text.strip())
    except PydanticCustomError:
        raise _unknown(text) from None
    if kind == "real-time" and length.delta < _SHORTEST_REAL_TIME:
        raise SpecError(
            "trigger.interval",
            f"a batch of the real-time trigger lasts at least 5 seconds; {length} is shorter",
            do="rows are written as they arrive: a longer interval does not delay them",
        )
    if kind == "continuous":
        return Trigger("continuous", length)
    return Trigger("real-time", length) if kind == "real-time" else Trigger("interval", length)


def _unknown(text: str) -> SpecError:
    return SpecError("trigger.unknown", f"{text!r} is not a trigger", do=f"write {_FORMS}")
