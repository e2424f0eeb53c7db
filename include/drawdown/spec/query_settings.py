"""The Spark settings that a spec may make: under ``conf:``, and under ``state:`` for the state store.

Names and kinds are read from SQLConf and RocksDBConf of Spark 4.2.0. ``conf:`` accepts only session settings
that affect a drain and have no key of their own. Left out on purpose: state format versions and everything
else that the first run freezes in the offset log, switches that only restore an old bug, and ``stopTimeout``:
a drain waits for its query to end before it releases the lease.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from drawdown.values.model import problem
from drawdown.values.nearest import did_you_mean

BATCHES_TO_RETAIN = 30
"""spark.sql.streaming.minBatchesToRetain of a query that does not set it; Spark's default is 100."""

Kind = Literal["flag", "whole", "ratio", "time", "text"]
Value = str | int | float | bool

_STREAMING = "spark.sql.streaming."
_STATE_STORE = _STREAMING + "stateStore."

CONF: Mapping[str, Kind] = {
    "spark.sql.streaming.fileSink.log.cleanupDelay": "time",
    "spark.sql.streaming.fileSink.log.compactInterval": "whole",
    "spark.sql.streaming.fileSink.log.deletion": "flag",
    "spark.sql.streaming.fileSource.cleaner.numThreads": "whole",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "time",
    "spark.sql.streaming.fileSource.log.compactInterval": "whole",
    "spark.sql.streaming.fileSource.log.deletion": "flag",
    "spark.sql.streaming.maxBatchesToRetainInMemory": "whole",
    "spark.sql.streaming.metricsEnabled": "flag",
    "spark.sql.streaming.minBatchesToRetain": "whole",
    "spark.sql.streaming.noDataMicroBatches.enabled": "flag",
    "spark.sql.streaming.ratioExtraSpaceAllowedInCheckpoint": "ratio",
    "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition": "flag",
}
STATE: Mapping[str, Kind] = {
    "autoSnapshotRepair.enabled": "flag",
    "checkpointFormatVersion": "whole",
    "commitValidation.enabled": "flag",
    "compression.codec": "text",
    "encodingFormat": "text",
    "formatValidation.enabled": "flag",
    "maintenanceInterval": "time",
    "maxVersionsToDeletePerMaintenance": "whole",
    "minDeltasForSnapshot": "whole",
    "numStateStoreMaintenanceThreads": "whole",
    "rowChecksum.enabled": "flag",
    "skipNullsForStreamStreamJoins.enabled": "flag",
    "stateSchemaCheck": "flag",
    "unloadOnCommit": "flag",
}
ROCKSDB: Mapping[str, Kind] = {
    "rocksdb.allowFAllocate": "flag",
    "rocksdb.blockCacheSizeMB": "whole",
    "rocksdb.blockSizeKB": "whole",
    "rocksdb.boundedMemoryUsage": "flag",
    "rocksdb.changelogCheckpointing.enabled": "flag",
    "rocksdb.checkStaleReusedFilesInSnapshot": "flag",
    "rocksdb.compactOnCommit": "flag",
    "rocksdb.compression": "text",
    "rocksdb.formatVersion": "whole",
    "rocksdb.highPriorityPoolRatio": "ratio",
    "rocksdb.lockAcquireTimeoutMs": "whole",
    "rocksdb.maxMemoryUsageMB": "whole",
    "rocksdb.maxOpenFiles": "whole",
    "rocksdb.maxWriteBufferNumber": "whole",
    "rocksdb.memoryUpdateIntervalMs": "whole",
    "rocksdb.mergeOperatorVersion": "whole",
    "rocksdb.resetStatsOnLoad": "flag",
    "rocksdb.trackTotalNumberOfRows": "flag",
    "rocksdb.verifyNonEmptyFilesInZip": "flag",
    "rocksdb.writeBufferCacheRatio": "ratio",
    "rocksdb.writeBufferSizeMB": "whole",
}
_ELSEWHERE = {
    _STREAMING + "checkpointLocation": "Drawdown keeps the checkpoint",
    _STREAMING + "multipleWatermarkPolicy": "use the key `watermark_policy`",
    _STREAMING + "schemaInference": "use the key `infer_schema` of the source",
    "spark.sql.shuffle.partitions": "use the key `state.partitions`",
    "spark.sql.session.timeZone": "it is always UTC",
    # Also found when a user writes them under `state:`.
    "providerClass": "use the key `provider`",
}
MUST_BE: Mapping[Kind, str] = {
    "flag": "true or false",
    "whole": "a whole number",
    "ratio": "a number from 0 to 1",
    "time": 'a time in the notation of Spark, for example "30s" or "10min"',
    "text": "text",
}
_TIME = re.compile(r"[0-9]{1,12}(us|ms|s|m|min|h|d)")


def check_conf(given: Mapping[str, Value]) -> None:
    """Raise a PydanticCustomError for the first key of ``conf:`` without effect or with a wrong value."""
    _check(given, CONF)


def check_state(given: Mapping[str, Value], provider: Literal["rocksdb", "hdfs"]) -> None:
    """Raise the same for the keys under ``state:``, which are written without Spark's prefix."""
    _check(given, {**STATE, **ROCKSDB} if provider == "rocksdb" else STATE)


def _check(given: Mapping[str, Value], known: Mapping[str, Kind]) -> None:
    for name, value in given.items():
        if name not in known:
            what = f"this option has no effect here; {_instead(name, known)}"
            raise problem("unknown-option", what, name, do="correct or remove it")
        if not _is(known[name], value):
            raise problem("wrong-type", f"must be {MUST_BE[known[name]]}", name, do="correct the value")


def _instead(name: str, known: Mapping[str, Kind]) -> str:
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if name.startswith(_STATE_STORE):
        return f"under `state:` it is {name.removeprefix(_STATE_STORE)!r}"
    if name.startswith("spark.") and not name.startswith("spark.sql."):
        return "application settings go into `conf:` of a cluster profile in project.yaml"
    return did_you_mean(name, known)


def _is(kind: Kind, value: Value) -> bool:
    if kind == "flag" or isinstance(value, bool):
        return kind == "flag" and isinstance(value, bool)
    if kind == "whole":
        return isinstance(value, int)
    if kind == "ratio":
        return isinstance(value, int | float) and 0 <= value <= 1
    return isinstance(value, str) and (kind == "text" or _TIME.fullmatch(value) is not None)
