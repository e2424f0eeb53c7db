"""Topics of a Kafka broker as a sink, exactly once by transactions or at least once by Spark's writer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drawdown.kinds import SinkKind
from drawdown.values.model import problem
from drawdown.values.option_types import FLAG, WHOLE, one_of

if TYPE_CHECKING:
    from drawdown.spec import Sink

# Producer options for sending and waiting; none that authenticates or loads classes.
_OPTIONS = (
    WHOLE.of(
        "kafka.batch.size", "kafka.buffer.memory", "kafka.connections.max.idle.ms",
        "kafka.delivery.timeout.ms", "kafka.linger.ms", "kafka.max.block.ms",
        "kafka.max.in.flight.requests.per.connection",
        "kafka.max.request.size", "kafka.reconnect.backoff.max.ms", "kafka.reconnect.backoff.ms",
        "kafka.request.timeout.ms", "kafka.retries", "kafka.retry.backoff.ms", "kafka.send.buffer.bytes",
        "asyncProgressTrackingCheckpointIntervalMs",
    )
    | FLAG.of("kafka.enable.idempotence", "asyncProgressTrackingEnabled")
    | one_of("all", "-1", "0", "1").of("kafka.acks")
    | one_of("none", "gzip", "snappy", "lz4", "zstd").of("kafka.compression.type")
)  # fmt: skip
# The options that a transactional producer takes too; it sets acks, retries and idempotence itself.
_TRANSACTIONAL = frozenset({
    "kafka.batch.size", "kafka.compression.type", "kafka.linger.ms", "kafka.max.request.size",
    "kafka.request.timeout.ms",
})  # fmt: skip


def _stage(sink: Sink) -> str:
    if sink.transactional:
        return "drawdown.sinks.kafka.stage:ExactlyOnceKafkaSink"
    return "drawdown.sinks.kafka.stage_at_least_once:KafkaSink"


def _check(sink: Sink) -> None:
    for name in sink.options if sink.transactional else ():
        if name not in _TRANSACTIONAL:
            raise problem(
                "no-effect", "only Spark's own writer takes this option", "options", name,
                do="remove it, or say `delivery: at_least_once`",
            )  # fmt: skip


KIND = SinkKind(
    formats=("kafka",),
    title="Kafka",
    page="kafka.md",
    stage=_stage,
    target=lambda sink: "drawdown.sinks.kafka.publish:output_target" if sink.transactional else None,
    staging=lambda _, delivery: "none" if delivery == "at_least_once" else "apart",
    shown=lambda sink: f"topic {sink.topic}" if sink.topic else "topics named by the rows",
    keys=frozenset({"topic", "broker", "delivery"}),
    options={"kafka": _OPTIONS},
    check=_check,
    no_replay="rows that consumers have read from a topic cannot be undone",
)
