"""`replay:` of pipeline.yaml, and which pipelines can be replayed at all."""

from __future__ import annotations

from collections.abc import Mapping

from drawdown.spec.reading.model import SpecModel, problem
from drawdown.spec.sink import Sink
from drawdown.spec.source import Source
from drawdown.spec.values.duration import Duration, PositiveDuration

_NONE = Duration.parse("0 seconds")
_TAKEN_BACK = ("delta", "postgres")
# Why rows of an interval cannot be taken back from others.
_KEPT_FOR_EVER: Mapping[str, str] = {
    "kafka": "what consumers have read from a topic cannot be taken back",
    "foreach_batch": "nobody but your function knows what it wrote",
    "foreach": "nobody but your class knows what it wrote",
    "console": "what is printed cannot be taken back",
    "memory": "its rows are gone with the run that wrote them",
}
_NEVER_AGAIN = frozenset({"socket", "rate", "rate-micro-batch", "python"})
# Options by which a stream gives other rows than the table has; startingVersion: 0 gives all.
_NOT_THE_TABLE: Mapping[str, str] = {
    "readChangeFeed": "that has no changes",
    "startingVersion": "that has the rows of before, too",
    "startingTimestamp": "that has the rows of before, too",
    "excludeRegex": "that has the rows of all files",
}


class Replay(SpecModel):
    """The event-time interval a replay recomputes, and how much more it reads on either side."""

    interval: PositiveDuration
    lookback: Duration = _NONE
    lookahead: Duration = _NONE


def check_replay(sink: Sink, sources: Mapping[str, Source]) -> None:
    """Raises a PydanticCustomError for a pipeline of which no interval can be computed again and replaced."""
    if sink.format not in _TAKEN_BACK:
        why = _KEPT_FOR_EVER.get(sink.format, "readers know its files, and one commit cannot take some away")
        raise problem(
            "contradiction", f"a {sink.format} sink cannot be replayed: {why}", "replay",
            do="remove `replay:`, or write into a delta or postgres sink",
        )  # fmt: skip
    if sink.mode == "complete":
        raise problem(
            "contradiction", "in complete mode each batch replaces the whole result: no interval is its own",
            "replay", do="remove `replay:`; or say mode: update, with keys",
        )  # fmt: skip
    if sink.time_column is None:
        raise problem(
            "missing-key", "replay needs sink.time_column", "replay", do="add `time_column:` to the sink"
        )
    if sink.mode == "update" and sink.time_column not in sink.keys:
        raise problem(
            "contradiction",
            f"{sink.time_column} is not among the keys: a key could move from one interval to another, and a"
            " replay would bring its older row back",
            "replay", do=f"add {sink.time_column} to `keys:`, or remove `replay:`",
        )  # fmt: skip
    for name, source in sources.items():
        if not source.static:
            _check_source(name, source)


def _check_source(name: str, source: Source) -> None:
    if source.format in _NEVER_AGAIN:
        raise problem(
            "contradiction", f"a {source.format} source does not give again what it has given", "replay",
            do=f"land the rows of {name} as files by a pipeline of their own, and read those",
        )  # fmt: skip
    if source.format in ("delta", "table"):
        for option, why in _NOT_THE_TABLE.items():
            if str(source.options.get(option, "0")).lower() not in ("0", "false"):
                raise problem(
                    "contradiction",
                    f"source {name} cannot be replayed with {option}: a replay reads the table as of a"
                    f" version, and {why}",
                    "replay", do=f"remove `replay:` or {option}",
                )  # fmt: skip
