"""The options a spec may give to Spark, by format: one that Spark would accept and ignore is an error.

Names are Spark's own, in its documented spelling, read from the classes of Spark 4.2.0 (CSVOptions,
JSONOptions, XmlOptions, TextOptions, ParquetOptions, OrcOptions, FileStreamOptions, KafkaSourceProvider)
and Delta 4.4.0 (DeltaOptions). Left out on purpose:

- ``path``, ``basePath``, ``rowValidationXSDPath``, ``schemaTrackingLocation``, ``checkpointLocation``:
  files outside the spec's own paths;
- ``mode``, ``columnNameOfCorruptRecord``: the key ``malformed`` says it; ``inferSchema``: it is declared;
- ``modifiedBefore``: file streams refuse it; ``endingOffsets``: a stream has no end;
- Kafka: all that connects, logs in or loads classes (CVE-2023-25194: ``sasl.jaas.config``, serializers,
  interceptors, ``group.id``): brokers stand in project.yaml. Allowed are subscribe, subscribePattern,
  assign, starting positions, bounds per batch, minPartitions, includeHeaders, failOnDataLoss,
  groupIdPrefix, consumer timeouts, back-offs, fetch sizes and the isolation level.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from drawdown.spec.reading.model import problem
from drawdown.spec.reading.nearest import did_you_mean

SourceFormat = Literal[
    "csv", "json", "parquet", "orc", "text", "xml", "delta", "table", "kafka", "python",
    "socket", "rate", "rate-micro-batch",
]  # fmt: skip
SinkFormat = Literal[
    "delta", "parquet", "orc", "json", "csv", "text", "kafka", "postgres",
    "foreach_batch", "foreach", "console", "memory",
]  # fmt: skip

_TIME = frozenset({"dateFormat", "timestampFormat", "timestampNTZFormat", "timeFormat", "locale"})

_CSV_READ = _TIME | {
    "sep", "delimiter", "encoding", "charset", "quote", "escape", "comment", "header", "enforceSchema",
    "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "nanValue", "positiveInf",
    "negativeInf", "maxColumns", "maxCharsPerColumn", "unescapedQuoteHandling", "multiLine",
    "charToEscapeQuoteEscaping", "emptyValue", "lineSep", "timeZone", "enableDateTimeParsingFallback",
    "inputBufferSize", "columnPruning", "extension",
}  # fmt: skip
_JSON_READ = _TIME | {
    "primitivesAsString", "allowComments", "allowUnquotedFieldNames", "allowSingleQuotes",
    "allowNumericLeadingZeros", "allowBackslashEscapingAnyCharacter", "allowUnquotedControlChars",
    "allowNonNumericNumbers", "multiLine", "encoding", "charset", "lineSep", "timeZone",
    "enableDateTimeParsingFallback", "maxNestingDepth", "maxNumLen", "maxStringLen",
}  # fmt: skip
_READ: dict[str, frozenset[str]] = {
    "csv": _CSV_READ,
    "json": _JSON_READ,
    "xml": _TIME | {
        "rowTag", "encoding", "charset", "excludeAttribute", "attributePrefix", "valueTag", "nullValue",
        "timeZone", "ignoreSurroundingSpaces", "ignoreNamespace", "wildcardColName", "multiLine",
    },
    "parquet": frozenset({"mergeSchema", "datetimeRebaseMode", "int96RebaseMode"}),
    "orc": frozenset({"mergeSchema"}),
    "text": frozenset({"wholetext", "lineSep", "encoding"}),
}  # fmt: skip
_FILES = frozenset(
    {"pathGlobFilter", "recursiveFileLookup", "modifiedAfter", "ignoreCorruptFiles", "ignoreMissingFiles"}
)
_FILE_STREAM = frozenset({
    "maxFilesPerTrigger", "maxBytesPerTrigger", "latestFirst", "fileNameOnly", "maxFileAge",
    "maxCachedFiles", "discardCachedInputRatio", "cleanSource", "sourceArchiveDir",
})  # fmt: skip
_DELTA_STREAM = frozenset({
    "maxFilesPerTrigger", "maxBytesPerTrigger", "startingVersion", "startingTimestamp", "ignoreDeletes",
    "ignoreChanges", "skipChangeCommits", "readChangeFeed", "excludeRegex",
    "failOnDataLoss",
})  # fmt: skip
_TEST_ONLY: dict[str, frozenset[str]] = {
    "socket": frozenset({"host", "port", "includeTimestamp"}),
    "rate": frozenset({"rowsPerSecond", "rampUpTime", "numPartitions"}),
    "rate-micro-batch": frozenset(
        {"rowsPerBatch", "numPartitions", "startTimestamp", "advanceMillisPerBatch"}
    ),
}
_REQUIRED = {"socket": ("host", "port"), "rate-micro-batch": ("rowsPerBatch",)}
# What Spark can read as values (FileStreamOptions); it would refuse a wrong one when the query starts.
_VALUES: dict[str, tuple[str, str]] = {
    "maxFilesPerTrigger": (r"[1-9]\d{0,8}", "a whole number from 1"),
    "maxBytesPerTrigger": (r"[1-9]\d*([kmgtp]?b|[kmgtp])?", "a size such as 100m"),
    "maxCachedFiles": (r"\d{1,9}", "a whole number"),
    "discardCachedInputRatio": (r"0(\.\d+)?|1(\.0+)?", "a number from 0 to 1"),
    "maxFileAge": (r"\d+(us|ms|s|m|min|h|d)?", "a time such as 7d or 12h"),
    "latestFirst": ("true|false", "true or false"),
    "fileNameOnly": ("true|false", "true or false"),
    "cleanSource": ("archive|delete|off", "archive, delete or off"),
}
_DELTA_STATIC = frozenset({"versionAsOf", "timestampAsOf"})
_KAFKA = frozenset({
    "subscribe", "subscribePattern", "assign", "startingOffsets", "startingTimestamp",
    "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger", "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition",
    "includeHeaders", "failOnDataLoss", "groupIdPrefix", "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "kafka.isolation.level",
    "kafka.max.poll.records", "kafka.max.poll.interval.ms", "kafka.request.timeout.ms",
    "kafka.default.api.timeout.ms", "kafka.session.timeout.ms", "kafka.heartbeat.interval.ms",
    "kafka.fetch.min.bytes", "kafka.fetch.max.bytes", "kafka.fetch.max.wait.ms",
    "kafka.max.partition.fetch.bytes", "kafka.receive.buffer.bytes", "kafka.reconnect.backoff.ms",
    "kafka.reconnect.backoff.max.ms", "kafka.retry.backoff.ms", "kafka.connections.max.idle.ms",
})  # fmt: skip

_WRITE: dict[str, frozenset[str]] = {
    "delta": frozenset({"delta.enableChangeDataFeed"}),
    "parquet": frozenset({"compression", "maxRecordsPerFile", "retention"}),
    "orc": frozenset({"compression", "maxRecordsPerFile", "retention"}),
    "json": _TIME | {
        "compression", "encoding", "lineSep", "timeZone", "ignoreNullFields", "pretty",
        "writeNonAsciiCharacterAsCodePoint", "maxRecordsPerFile", "retention",
    },
    "csv": _TIME | {
        "sep", "delimiter", "encoding", "quote", "quoteAll", "escape", "escapeQuotes", "header",
        "nullValue", "emptyValue", "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace",
        "charToEscapeQuoteEscaping", "lineSep", "compression", "timeZone", "extension",
        "maxRecordsPerFile", "retention",
    },
    "text": frozenset({"compression", "encoding", "lineSep", "maxRecordsPerFile", "retention"}),
    # Of Kafka's producer: how it sends and how long it waits; nothing that logs in or loads classes.
    "kafka": frozenset({
        "kafka.acks", "kafka.batch.size", "kafka.buffer.memory", "kafka.compression.type",
        "kafka.connections.max.idle.ms", "kafka.delivery.timeout.ms", "kafka.enable.idempotence",
        "kafka.linger.ms", "kafka.max.block.ms", "kafka.max.in.flight.requests.per.connection",
        "kafka.max.request.size", "kafka.reconnect.backoff.max.ms", "kafka.reconnect.backoff.ms",
        "kafka.request.timeout.ms", "kafka.retries", "kafka.retry.backoff.ms", "kafka.send.buffer.bytes",
        "asyncProgressTrackingEnabled", "asyncProgressTrackingCheckpointIntervalMs",
    }),
    "postgres": frozenset(),
    "foreach_batch": frozenset(),
    "foreach": frozenset(),
    "console": frozenset({"numRows", "truncate"}),
    "memory": frozenset(),
}  # fmt: skip

# Of the options of a Kafka sink those that a transactional producer takes too; it decides acks, retries and
# idempotence itself.
TRANSACTIONAL = frozenset({
    "kafka.batch.size", "kafka.compression.type", "kafka.linger.ms", "kafka.max.request.size",
    "kafka.request.timeout.ms",
})  # fmt: skip

# Known to Spark, and said elsewhere or not at all: the error says where.
_ELSEWHERE = {
    "path": "the key `path` of the source says it",
    "mode": "the key `malformed` says it",
    "columnNameOfCorruptRecord": "the key `malformed` says it",
    "inferSchema": "the key `infer_schema` of the source says it",
    "modifiedBefore": "file streams refuse it",
    "endingOffsets": "a stream has no end; bound the drain instead",
    "endingTimestamp": "a stream has no end; bound the drain instead",
    "endingOffsetsByTimestamp": "a stream has no end; bound the drain instead",
    "kafka.bootstrap.servers": "brokers stand in project.yaml",
    "kafka.security.protocol": "brokers stand in project.yaml",
    "kafka.sasl.mechanism": "brokers stand in project.yaml",
    "kafka.sasl.jaas.config": "brokers stand in project.yaml",
    "kafka.group.id": "Spark makes its own; groupIdPrefix names it",
    "checkpointLocation": "Drawdown keeps the checkpoint",
}


def source_options(format: SourceFormat, static: bool) -> frozenset[str] | None:
    """The option names a source of this format takes; None for a Python data source, which has its own."""
    if format == "python":
        return None
    if format == "kafka":
        return _KAFKA
    if format in ("delta", "table"):
        return _DELTA_STATIC if static else _DELTA_STREAM
    if format in _TEST_ONLY:
        return _TEST_ONLY[format]
    names = _READ[format] | _FILES
    return names if static else names | _FILE_STREAM


def required_options(format: SourceFormat) -> tuple[str, ...]:
    """Options without which Spark does not start the source."""
    return _REQUIRED.get(format, ())


def sink_options(format: SinkFormat) -> frozenset[str]:
    """The option names a sink of this format takes."""
    return _WRITE[format]


def check_names(given: Iterable[str], known: Collection[str], *at: str) -> None:
    """Raises a PydanticCustomError (``unknown-option``) for the first name that is not known."""
    for name in given:
        if name not in known:
            why = _ELSEWHERE.get(name) or did_you_mean(name, known)
            raise problem(
                "unknown-option",
                f"this option has no effect here; {why}",
                *at,
                name,
                do="correct or remove it",
            )


def check_source_values(options: Mapping[str, object], *at: str) -> None:
    """Raises a PydanticCustomError (``wrong-value``) for a value of a file source that Spark cannot read."""
    for name in options.keys() & _VALUES.keys():
        pattern, must_be = _VALUES[name]
        if not re.fullmatch(pattern, str(options[name]).strip(), re.IGNORECASE):
            raise problem("wrong-value", f"must be {must_be}", *at, name, do="correct the value")


def check_one_bound(options: Mapping[str, object], *at: str) -> None:
    """Spark refuses both bounds of a batch at once, when the query starts; here it is refused before."""
    if "maxFilesPerTrigger" in options and "maxBytesPerTrigger" in options:
        raise problem(
            "contradiction",
            "maxFilesPerTrigger and maxBytesPerTrigger cannot both be given",
            *at,
            "maxBytesPerTrigger",
            do="keep one of them",
        )
