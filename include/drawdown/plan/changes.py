"""Changes between two runs of a pipeline: which of them a checkpoint takes.

Source of the list: "Recovery Semantics after Changes in a Streaming Query" of Spark's Structured Streaming
guide, and Spark's OffsetSeqMetadata (settings kept in the offset log). Where the guide calls an effect
unpredictable or ill-defined, the change is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drawdown.errors import RefusedError
from drawdown.plan import kept_state
from drawdown.spec import Pipeline
from drawdown.verdicts import PlanVerdict

_FILES = frozenset({"delta", "parquet", "orc", "json", "csv", "text"})
_FOREACH = frozenset({"foreach", "foreach_batch"})


@dataclass(frozen=True)
class SpecChange:
    """One noted value that differs from the checkpoint's.

    Attributes:
        why: the reason, in the words of Spark's guide.
    """

    key: str
    before: Any
    now: Any
    allowed: bool
    why: str

    def __str__(self) -> str:
        # Keys are keys together: both lists whole.
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
    if old in _FILES and new in _FILES:
        return False, "another sink or output directory would lack every row written so far"
    if new == "postgres" and old == "postgres":
        return False, "another table would lack every row written so far"
    if new == "kafka" and old == "kafka":
        return True, "changes of the output topic are allowed; it gets the new rows only"
    if new == "kafka" and old in _FILES:
        return True, "a file sink may become a Kafka sink; Kafka gets the new rows only"
    if new in _FILES and old == "kafka":
        return False, "a Kafka sink cannot become a file sink"
    if {old, new} <= _FOREACH | {"kafka"}:
        return True, "a Kafka sink may become foreach and the other way round; it gets the new rows only"
    return False, f"a {old} sink cannot become a {new} sink"


def _other_state_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[bool, str]:
    """Those that Spark keeps in the offset log stay what they were, whatever a later run says."""
    changed = {key for key in {**before, **now} if before.get(key) != now.get(key)}
    if changed & _IN_OFFSET_LOG:
        return False, _FROZEN
    return True, "the state store reads what it wrote before"


def _other_keys(before: list[str], now: list[str]) -> tuple[bool, str]:
    if sorted(before) == sorted(now):
        return True, "the order of the keys makes no difference"
    return (
        False,
        "rows that were published as different ones would be overwritten, or stand beside each other",
    )


def _other_kept(before: list[Any], now: list[Any]) -> tuple[bool, str]:
    if kept_state.fits(before, now):
        return True, "what is in state is read as what it was"
    return False, _STATE


def _other_versions(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[bool, str]:
    if _numbers(now.get("spark", "")) < _numbers(before.get("spark", "")) and "spark" in now:
        return False, (
            "an older Spark does not know all that a newer one has written; run it with that one, or restore"
            " a snapshot of before the upgrade"
        )
    return True, "the state goes on in the formats that its first run fixed"


def _numbers(version: str) -> list[int]:
    """Of 4.2.0: 4, 2 and 0."""
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
_FROZEN = "it is fixed in the checkpoint by the first run"

_KINDS: Mapping[str, _Judge] = {
    r"sources\.[^.]+": _refused(_SOURCES),
    r"sources\.[^.]+\.options": _allowed("rate limits and reading options may change"),
    r"sources\.[^.]+\.schema": _allowed("the columns read may change while state and sink take the output"),
    r"sources\.[^.]+\.watermark": _allowed("rows of the next batches are judged by it; state stays"),
    "source_order": _refused("Spark knows sources by their place in the query"),
    "transform": _allowed("filters, projections and function bodies may change; state stays as it is"),
    "sink": _other_sink,
    "sink.name": _refused("the sink knows by it which batches it has: keep `first_name:` as it was"),
    "sink.mode": _refused("rows written in one output mode do not go on in another"),
    "sink.keys": _other_keys,
    "sink.options": _allowed("it holds for the files written from now on"),
    "sink.schema": _allowed(
        "the sink takes rows of another schema; a Delta table is given the columns it lacks"
    ),
    "sink.identity": _refused("the target was replaced by another one of the same name"),
    "state.operators": _refused(_STATE),
    "state.kept": _other_kept,
    "state.provider": _refused(_FROZEN),
    "state.partitions": _refused(_FROZEN),
    "state.options": _other_state_options,
    "conf": _allowed("it holds from the next run on"),
    "watermark_policy": _refused(_FROZEN),
    "time_zone": _refused(_FROZEN),
    "versions": _other_versions,
    "format": _allowed("what an older version has noted is read as what it was"),
}


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[SpecChange]:
    """What differs, in the order of `now`; sources that are gone come last.

    A key that only one side has is unknown on the other (an older checkpoint, a part of a fingerprint), but
    for the sources themselves, where both sides know any. What is in state is compared as it is kept; the
    operators of the analysed plan only where an older checkpoint knows no more.
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


def change_verdicts(found: list[SpecChange]) -> Iterator[PlanVerdict]:
    """Each change as a verdict, with both values."""
    for change in found:
        if change.allowed:
            yield PlanVerdict(
                "allowed", "checkpoint.change-allowed", f"{change}: {change.why}", about=change.key
            )
        else:
            yield PlanVerdict(
                "refused", "checkpoint.changed", f"{change}: {change.why}", do=remedy(), about=change.key
            )


def remedy(name: str = "NAME") -> str:
    """What to do about a change that the checkpoint does not take."""
    return (
        "undo the change; or put the new version into the folder `next/` inside the pipeline's and"
        " `drawdown rebuild start` it (Delta sinks); or make a new pipeline folder with a sink of its own;"
        " or, when only versions of Spark or Drawdown and the words of operators changed,"
        f" `drawdown checkpoint accept {name} --why ...`"
    )


def refusal(pipeline: Pipeline, found: list[SpecChange]) -> RefusedError | None:
    """One error ``checkpoint.changed`` that names every change which the checkpoint cannot take."""
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
    """Both values as text; of two mappings or two lists, what only one of them has."""
    before, now = _sentences(before), _sentences(now)
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        return _entries(before, keys), _entries(now, keys)
    if isinstance(before, list) and isinstance(now, list) and sorted(before) != sorted(now):
        return _listed(before, now), _listed(now, before)
    return _text(before), _text(now)


def _sentences(value: Any) -> Any:
    """Operators in words; other values as they are."""
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        return [kept_state.said(each) for each in value]
    return value


def _entries(some: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{key} {some[key]}" for key in keys if key in some) or "not set"


def _listed(some: list[Any], others: list[Any]) -> str:
    return "; ".join(str(each) for each in some if each not in others) or "without it"


def _text(value: Any) -> str:
    if value is None:
        return "not there"
    return ", ".join(map(str, value)) if isinstance(value, list) else repr(value)
