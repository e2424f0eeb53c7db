"""Topics of a Kafka broker as a source.

Option names: KafkaSourceProvider. Options that connect, authenticate or load classes are left out
(CVE-2023-25194: ``sasl.jaas.config``, serializers, interceptors, ``group.id``): project.yaml has the brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drawdown.kinds import ReplayCode, SourceKind
from drawdown.sources.kafka.options import check_kafka_options
from drawdown.values.model import problem
from drawdown.values.option_types import COUNT, FLAG, TEXT, WHOLE, OptionType, one_of

if TYPE_CHECKING:
    from drawdown.spec import Source

_OPTIONS: Mapping[str, OptionType] = (
    TEXT.of(
        "subscribe", "subscribePattern", "assign", "startingOffsets", "startingOffsetsByTimestamp",
        "maxTriggerDelay", "groupIdPrefix",
    )
    | COUNT.of("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "minPartitions", "maxRecordsPerPartition")
    | FLAG.of("includeHeaders", "failOnDataLoss")
    | one_of("error", "latest").of("startingOffsetsByTimestampStrategy")
    | one_of("read_committed", "read_uncommitted").of("kafka.isolation.level")
    | WHOLE.of(
        "startingTimestamp", "kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs", "kafka.max.poll.records", "kafka.max.poll.interval.ms",
        "kafka.request.timeout.ms", "kafka.default.api.timeout.ms", "kafka.session.timeout.ms",
        "kafka.heartbeat.interval.ms", "kafka.fetch.min.bytes", "kafka.fetch.max.bytes",
        "kafka.fetch.max.wait.ms", "kafka.max.partition.fetch.bytes", "kafka.receive.buffer.bytes",
        "kafka.reconnect.backoff.ms", "kafka.reconnect.backoff.max.ms", "kafka.retry.backoff.ms",
        "kafka.connections.max.idle.ms",
    )
)  # fmt: skip


def _options(source: Source) -> Mapping[str, OptionType]:
    return _OPTIONS


def _check(source: Source) -> None:
    check_kafka_options(source.options)
    if source.value == "string" and source.schema_text is not None:
        raise problem(
            "no-effect",
            "value: string has no schema",
            "schema",
            do="remove the key, or say json, csv or avro",
        )
    suffix = "avsc" if source.value == "avro" else "ddl"
    if source.value != "string" and source.schema_text is None:
        raise problem(
            "missing-key", f"value: {source.value} needs a schema", do=f"add `schema: schemas/x.{suffix}`"
        )
    if source.value == "avro" and not str(source.schema_file).endswith(".avsc"):
        raise problem(
            "wrong-path",
            "value: avro needs the Avro schema that the records were written with",
            "schema",
            do="name a .avsc file in the pipeline's folder",
        )


KIND = SourceKind(
    formats=("kafka",),
    title="Kafka",
    page="kafka.md",
    reader="drawdown.sources.kafka.reader:read_kafka",
    backlog="drawdown.sources.kafka.backlog:waiting",
    published="drawdown.sources.kafka.commit_group:commit",
    keys=frozenset({"broker", "value", "commit_group", "limits"}),
    options=_options,
    check=_check,
    replay=ReplayCode(
        check="drawdown.sources.kafka.replay:offsets_to_read",
        rows="drawdown.sources.kafka.reader:read_replayed_offsets",
    ),
)
