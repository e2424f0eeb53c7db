"""Check the options of a Kafka source together, without asking a broker.

Source: org.apache.spark.sql.kafka010.KafkaSourceProvider (Spark 4.2), which checks most of it only when the
query starts, and silently picks one of two starting positions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from drawdown.values.duration import option_ms
from drawdown.values.json_text import read_json
from drawdown.values.kafka_names import refuse_reserved
from drawdown.values.model import problem

SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingOffsets", "startingTimestamp", "startingOffsetsByTimestamp")
_STRATEGY = "startingOffsetsByTimestampStrategy"
# Where a stream starts and how much a batch takes: a read of given offsets does not use these.
ONLY_STREAMS = (*_STARTS, _STRATEGY, "maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_COUNTS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition")
_DEFAULT_DELAY = "15m"


def check_kafka_options(options: Mapping[str, Any]) -> None:
    """Raise a PydanticCustomError for options that are missing, contradict each other or have no effect."""
    _exactly_one(options, SUBSCRIPTIONS)
    starts = [name for name in _STARTS if name in options]
    if len(starts) > 1:
        raise problem(
            "contradiction",
            f"{' and '.join(starts)} both say where the first run starts",
            "options",
            starts[1],
            do="keep one of them",
        )
    if _STRATEGY in options and not {"startingTimestamp", "startingOffsetsByTimestamp"} & options.keys():
        raise _no_effect(_STRATEGY, "it says what a starting timestamp without a record means")
    _check_bounds(options)
    _check_json(options, "assign", '{"topic": [0, 1]}', _is_partitions)
    _refuse_reserved_topics(options)
    _check_json(options, "startingOffsetsByTimestamp", '{"topic": {"0": 1700000000000}}', _is_offsets)
    if str(options.get("startingOffsets", "earliest")).lower() not in ("earliest", "latest"):
        _check_json(
            options, "startingOffsets", 'earliest, latest or {"topic": {"0": 23, "1": -2}}', _is_offsets
        )


def _refuse_reserved_topics(options: Mapping[str, Any]) -> None:
    """A pattern may match them: Kafka leaves out its own topics, and to read a ledger harms nobody."""
    for name in str(options.get("subscribe", "")).split(","):
        refuse_reserved(name.strip(), "options", "subscribe")
    assigned = read_json(str(options["assign"])) if "assign" in options else {}
    for name in assigned:
        refuse_reserved(name, "options", "assign")


def trigger_delay(options: Mapping[str, Any]) -> timedelta:
    """Return maxTriggerDelay: how long fewer records than minOffsetsPerTrigger may wait (default 15 min)."""
    delay = option_ms(options.get("maxTriggerDelay", _DEFAULT_DELAY))
    assert delay is not None
    return timedelta(milliseconds=delay)


def _exactly_one(options: Mapping[str, Any], names: tuple[str, ...]) -> None:
    given = [name for name in names if name in options]
    if len(given) != 1:
        raise problem(
            "missing-key" if not given else "contradiction",
            f"a Kafka source needs exactly one of {', '.join(names)}",
            "options",
            do="add one, for example `options: {subscribe: my_topic}`",
        )


def _check_bounds(options: Mapping[str, Any]) -> None:
    for name in _COUNTS:
        if name in options and not re.fullmatch(r"[1-9]\d*", str(options[name])):
            raise problem("wrong-value", "must be a positive number", "options", name, do="correct the value")
    least, most = options.get("minOffsetsPerTrigger"), options.get("maxOffsetsPerTrigger")
    if least is not None and most is not None and int(least) > int(most):
        raise problem(
            "contradiction",
            "minOffsetsPerTrigger is more than maxOffsetsPerTrigger",
            "options",
            "minOffsetsPerTrigger",
            do="lower it",
        )
    if "maxTriggerDelay" in options:
        if least is None:
            raise _no_effect("maxTriggerDelay", "it bounds how long minOffsetsPerTrigger may delay a run")
        if option_ms(options["maxTriggerDelay"]) is None:
            raise problem(
                "wrong-value",
                "must be a time, for example 10m",
                "options",
                "maxTriggerDelay",
                do="correct the value",
            )


def _check_json(options: Mapping[str, Any], name: str, example: str, fits: Any) -> None:
    if name not in options:
        return
    try:
        value = read_json(str(options[name]))
    except ValueError:
        value = None
    if not (isinstance(value, dict) and value and all(fits(part) for part in value.values())):
        raise problem("wrong-value", f"must be {example}", "options", name, do="correct the value")


def _is_partitions(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, int) for part in value)


def _is_offsets(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(part, int) for part in value.values())


def _no_effect(name: str, why: str) -> Exception:
    return problem("no-effect", why, "options", name, do="remove it")
