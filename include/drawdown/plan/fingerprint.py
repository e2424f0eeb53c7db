"""The fingerprint: what of a spec is frozen in a checkpoint, and what a change to it means.

Compared before anything is started, so a change that state cannot take is refused with both values
shown and nothing touched. Source of the list: "Recovery Semantics after Changes in a Streaming Query"
of Spark's Structured Streaming guide, and Spark's OffsetSeqMetadata (settings kept in the offset log).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from drawdown.errors import RefusedError
from drawdown.spec import Pipeline, Source

# Which records a source reads; rate limits and the like may change between runs.
_IDENTITY_OPTIONS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True)
class Change:
    """One frozen value that differs from the checkpoint's."""

    key: str
    before: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.key} was {self.before!r} and is now {self.now!r}"


def spec_fingerprint(pipeline: Pipeline) -> dict[str, Any]:
    """The frozen part of a spec, as flat JSON-ready keys and values."""
    return {
        **{f"sources.{n}": _identity(s) for n, s in pipeline.sources.items() if not s.static},
        "sink": f"{pipeline.sink.format} {pipeline.sink.path}",
        "sink.mode": pipeline.sink.mode,
        "state.provider": pipeline.state.provider,
        "state.partitions": pipeline.state.partitions,
        "watermark_policy": pipeline.watermark_policy,
        "time_zone": "UTC",
    }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Keys whose values differ; a key on one side only differs from None."""
    keys = dict.fromkeys([*before, *now])
    return [Change(k, before.get(k), now.get(k)) for k in keys if before.get(k) != now.get(k)]


def refuse_changes(pipeline: Pipeline, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise RefusedError ``checkpoint.changed`` naming every change that the checkpoint cannot take."""
    found = changes(before, now)
    if found:
        raise RefusedError(
            "checkpoint.changed",
            f"{pipeline.name} no longer fits its checkpoint: " + "; ".join(str(c) for c in found),
            where=str(pipeline.folder / "pipeline.yaml"),
            do="undo the change, or make a new pipeline folder with a sink of its own",
        )


def _identity(source: Source) -> str:
    what = [f"{k}={source.options[k]}" for k in _IDENTITY_OPTIONS if k in source.options]
    return " ".join([source.format, *([source.path] if source.path else []), *what])
