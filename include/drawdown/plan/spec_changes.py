"""Which changes between two runs of a pipeline its checkpoint accepts.

Source of the list: "Recovery Semantics after Changes in a Streaming Query" of Spark's Structured Streaming
guide, and Spark's OffsetSeqMetadata (settings kept in the offset log). If the guide calls an effect
unpredictable or ill-defined, the change is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drawdown.errors import RefusedError
from drawdown.plan import state_fit
from drawdown.plan_verdicts import PlanVerdict
from drawdown.spec import Pipeline
from drawdown.values.commands import rebuild

_FILES = frozenset({"delta", "parquet", "orc", "json", "csv", "text"})
_FOREACH = frozenset({"foreach", "foreach_batch"})


@dataclass(frozen=True)
class SpecChange:
    """A recorded value that differs from the checkpoint's.

    Attributes:
        why: the reason, as Spark's guide states it.
    """

    key: str
    before: Any
    now: Any
    allowed: bool
    why: str

    def __str__(self) -> str:
        # A key consists of all its columns, so both lists are shown in full.
        whole = self.key == "sink.keys"
        before, now = (_text(self.before), _text(self.now)) if whole else _differing(self.before, self.now)
        return f"{self.key} was {before} and is now {now}"


_Judge = Callable[[Any, Any], tuple[bool, str]]


def _refused(why: str) -> _Judge:
    return lambda before, now: (False, why)


def _allowed(why: str) -> _Judge:
    return lambda before, now: (True, why)


def _other_sink(before: str, now: str) -> tuple[bool, str]:
    """Sinks are ``format target``."""
    old, new = before.split()[0], now.split()[0]
    if new == "kafka" and old == "kafka":
        return True, "the output topic may change; it gets only new rows"
    if {old, new} <= _FOREACH | {"kafka"}:
        return True, "a Kafka sink may become foreach and vice versa; it gets only new rows"
    if old == new or {old, new} <= _FILES:
        what = "sink or output directory" if new in _FILES else "table" if new == "postgres" else "target"
        return False, f"a new {what} would lack all rows written so far"
    if new == "kafka" and old in _FILES:
        return True, "a file sink may become a Kafka sink; Kafka gets only new rows"
    if new in _FILES and old == "kafka":
        return False, "a Kafka sink cannot become a file sink"
    return False, f"a {old} sink cannot become a {new} sink"


def _other_state_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[bool, str]:
    """Settings that Spark keeps in the offset log stay fixed; later runs cannot change them."""
    changed = {key for key in {**before, **now} if before.get(key) != now.get(key)}
    if changed & _IN_OFFSET_LOG:
        return False, _FROZEN
    return True, "the state store reads what it wrote before"


def _other_keys(before: list[str], now: list[str]) -> tuple[bool, str]:
    if sorted(before) == sorted(now):
        return True, "the order of the keys makes no difference"
    return (
        False,
        "rows that were published as different rows would be overwritten or duplicated",
    )


def _other_kept(before: list[Any], now: list[Any]) -> tuple[bool, str]:
    if state_fit.fits(before, now):
        return True, "the stored state is read with its old meaning"
    return False, _STATE


def _other_versions(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[bool, str]:
    if _numbers(now.get("spark", "")) < _numbers(before.get("spark", "")) and "spark" in now:
        return False, (
            "an older Spark cannot read everything that a newer one wrote; use the newer version, or"
            " restore a snapshot from before the upgrade"
        )
    return True, "the state keeps the formats of its first run"


def _numbers(version: str) -> list[int]:
    """Return 4, 2 and 0 for 4.2.0."""
    return [int(each) for each in re.findall(r"\d+", version)[:3]]


_SOURCES = "changes in the number, type, topic or path of the sources are not allowed"
_STATE = "the grouping, join or deduplication keys, aggregates and state schema must stay as they are"
# Below `state:`. OffsetSeqMetadata.relevantSQLConfs, and the format of the commit log, Spark 4.2.
_IN_OFFSET_LOG = frozenset({
    "checkpointFormatVersion",
    "compression.codec",
    "encodingFormat",
    "rocksdb.formatVersion",
    "rocksdb.mergeOperatorVersion",
    "rowChecksum.enabled",
})  # fmt: skip
_FROZEN = "the first run fixed it in the checkpoint"

_KINDS: Mapping[str, _Judge] = {
    r"sources\.[^.]+": _refused(_SOURCES),
    r"sources\.[^.]+\.options": _allowed("rate limits and reading options may change"),
    r"sources\.[^.]+\.schema": _allowed(
        "the columns read may change as long as state and sink accept the output"
    ),
    r"sources\.[^.]+\.watermark": _allowed("the next batches use it; state is kept"),
    "source_order": _refused("Spark identifies sources by their position in the query"),
    "transform": _allowed("filters, projections and function bodies may change; state is kept"),
    "sink": _other_sink,
    "sink.name": _refused("the sink identifies its batches by it: restore the old `first_name:`"),
    "sink.mode": _refused("rows written in one output mode cannot be continued in another"),
    "sink.keys": _other_keys,
    "sink.options": _allowed("it applies to files written from now on"),
    "sink.schema": _allowed("the sink accepts a changed schema; a Delta table gets the missing columns"),
    "sink.identity": _refused("the target was replaced by a different one with the same name"),
    "state.operators": _refused(_STATE),
    "state.kept": _other_kept,
    "state.provider": _refused(_FROZEN),
    "state.partitions": _refused(_FROZEN),
    "state.options": _other_state_options,
    "conf": _allowed("it applies from the next run on"),
    "watermark_policy": _refused(_FROZEN),
    "time_zone": _refused(_FROZEN),
    "versions": _other_versions,
    "format": _allowed("data of an older version is read in its old format"),
}


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[SpecChange]:
    """Return what differs, in the order of `now`; removed sources come last.

    A key on one side only is unknown on the other (an older checkpoint, a partial fingerprint), except for
    sources when both sides have any. State is compared by what is kept in it; the operators of the analysed
    plan are compared only if an older checkpoint recorded nothing else.
    """
    source = re.compile(r"sources\.[^.]+").fullmatch
    compared = any(map(source, before)) and any(map(source, now))
    keys = [key for key in {**now, **before} if (key in now and key in before) or (compared and source(key))]
    if "state.kept" in keys:
        keys = [key for key in keys if key != "state.operators"]
    found = []
    for key in keys:
        old, new = before.get(key), now.get(key)
        if old != new:
            found.append(SpecChange(key, old, new, *_judge(key)(old, new)))
    return found


def change_verdicts(name: str, found: list[SpecChange]) -> Iterator[PlanVerdict]:
    """Yield each change of the pipeline `name` as a verdict, with both values."""
    for change in found:
        if change.allowed:
            yield PlanVerdict(
                "allowed", "checkpoint.change-allowed", f"{change}: {change.why}", about=change.key
            )
        else:
            yield PlanVerdict(
                "refused", "checkpoint.changed", f"{change}: {change.why}", do=remedy(name), about=change.key
            )


def remedy(name: str = "NAME") -> str:
    """Return the remedy for a change that the checkpoint does not accept."""
    return (
        "undo the change; or put the new version into the folder `next/` inside the pipeline's folder, and"
        f" run {rebuild(name)} (Delta sinks); or make a new pipeline folder with its own sink; or, if"
        " only the versions of Spark or Drawdown and their descriptions of operators changed,"
        f" `drawdown checkpoint accept {name} --why ...`"
    )


def refusal(pipeline: Pipeline, found: list[SpecChange]) -> RefusedError | None:
    """Return one ``checkpoint.changed`` error with every change that the checkpoint cannot accept, or
    None."""
    refused = [change for change in found if not change.allowed]
    if not refused:
        return None
    return RefusedError(
        "checkpoint.changed",
        f"{pipeline.name} no longer fits its checkpoint: "
        + "; ".join(f"{change} ({change.why})" for change in refused),
        where=str(pipeline.folder / "pipeline.yaml"),
        do=remedy(pipeline.name),
    )


def _judge(key: str) -> _Judge:
    return next(judge for pattern, judge in _KINDS.items() if re.fullmatch(pattern, key))


def _differing(before: Any, now: Any) -> tuple[str, str]:
    """Return both values as text; of two mappings or lists only the differences."""
    before, now = _sentences(before), _sentences(now)
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        return _entries(before, keys), _entries(now, keys)
    if isinstance(before, list) and isinstance(now, list) and sorted(before) != sorted(now):
        return _listed(before, now), _listed(now, before)
    return _text(before), _text(now)


def _sentences(value: Any) -> Any:
    """Return operators as sentences, other values unchanged."""
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return [state_fit.said(each) for each in value]
    return value


def _entries(some: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{key} {some[key]}" for key in keys if key in some) or "not set"


def _listed(some: list[Any], others: list[Any]) -> str:
    return "; ".join(str(each) for each in some if each not in others) or "without it"


def _text(value: Any) -> str:
    if value is None:
        return "not there"
    return ", ".join(map(str, value)) if isinstance(value, list) else repr(value)
