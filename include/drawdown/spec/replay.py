"""`replay:` of pipeline.yaml, and the check which pipelines can be replayed."""

from __future__ import annotations

from collections.abc import Mapping

from drawdown.sinks.registry import SINKS
from drawdown.sources.registry import SOURCES
from drawdown.spec.sink import Sink
from drawdown.spec.source import Source
from drawdown.values.duration import Duration, PositiveDuration
from drawdown.values.model import SpecModel, problem

_NONE = Duration.parse("0 seconds")


class Replay(SpecModel):
    """The event-time interval a replay recomputes, and how much more it reads on either side."""

    interval: PositiveDuration
    lookback: Duration = _NONE
    lookahead: Duration = _NONE


def check_replay(sink: Sink, sources: Mapping[str, Source]) -> None:
    """Raise a PydanticCustomError if intervals of the pipeline cannot be recomputed and replaced."""
    why = SINKS[sink.format].no_replay
    if why is not None:
        raise problem(
            "contradiction", f"a {sink.format} sink cannot be replayed: {why}", "replay",
            do="remove `replay:`, or write into a delta or postgres sink",
        )  # fmt: skip
    if sink.mode == "complete":
        raise problem(
            "contradiction", "in complete mode each batch replaces the whole result, so single intervals"
                             " cannot be replaced",
            "replay", do="remove `replay:`; or set `mode: update` with keys",
        )  # fmt: skip
    if sink.time_column is None:
        raise problem(
            "missing-key", "replay needs sink.time_column", "replay", do="add `time_column:` to the sink"
        )
    if sink.mode == "update" and sink.time_column not in sink.keys:
        raise problem(
            "contradiction",
            f"{sink.time_column} is not among the keys: a key could move from one interval to another, and"
            " a replay would restore its older row",
            "replay", do=f"add {sink.time_column} to `keys:`, or remove `replay:`",
        )  # fmt: skip
    for name, source in sources.items():
        if not source.static:
            _check_source(name, source)


def _check_source(name: str, source: Source) -> None:
    kind = SOURCES[source.format]
    if kind.replay is None:
        raise problem(
            "contradiction", f"a {source.format} source cannot be read a second time", "replay",
            do=f"write the rows of {name} to files with a separate pipeline, and read those files",
        )  # fmt: skip
    kind.check_replay(name, source)
