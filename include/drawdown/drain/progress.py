"""Collects a run's progress while it runs: Spark keeps only the newest 100 batches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from drawdown.metastore.operations.runs import PROGRESS_KEPT
from drawdown.metastore.state_rows import OF_ROCKSDB
from drawdown.query.carriers import SUFFIX
from drawdown.query.query import Query

# Reported by StreamingDeduplicateExec and StreamingDeduplicateWithinWatermarkExec.
_DUPLICATES = "numDroppedDuplicateRows"

# The few of many state store metrics that show dropped rows or memory that was too small.
_CUSTOM_METRICS = frozenset({
    _DUPLICATES, "numRowsReadDuringEviction", "loadedMapCacheHitCount",
    "loadedMapCacheMissCount", "rocksdbBytesCopied", "rocksdbReadBlockCacheHitCount",
    "rocksdbReadBlockCacheMissCount", "rocksdbSstFileSize", "rocksdbTotalBytesWritten",
})  # fmt: skip
_COUNTS_ROWS = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
_OPERATOR = {
    "operator": "operatorName",
    "updated": "numRowsUpdated",
    "removed": "numRowsRemoved",
    "late_groups": "numRowsDroppedByWatermark",
    "memory_bytes": "memoryUsedBytes",
}


class RunProgress:
    """Spark's StreamingQueryProgress for each batch of one query, in compact form.

    Attributes:
        late_groups: numRowsDroppedByWatermark over the whole run: groups, counted after partial
            aggregation.
        duplicates: numDroppedDuplicateRows over the whole run: rows that a deduplication dropped.
        entries: the last batches, as many as a run record keeps, oldest first; see ``compact``. ``status`` is
            Spark's StreamingQueryStatus when the entry was made.
    """

    def __init__(self, running: StreamingQuery, query: Query) -> None:
        self._query = running
        # Spark reports a source once, also where the transform reads it twice.
        self._sources = tuple(dict.fromkeys(query.source_order))
        self._rocksdb_counts = query.session.conf.get(_COUNTS_ROWS, "true") == "true"
        self._newest = -1
        self.late_groups = 0
        self.duplicates = 0
        self.entries: deque[dict[str, Any]] = deque(maxlen=PROGRESS_KEPT)

    def look(self) -> list[dict[str, Any]]:
        """Add the batches that ended since the last call; call it at least once per 100 batches.

        Returns:
            The new entries, oldest first.
        """
        java: Any = self._query._jsq
        found: list[Mapping[str, Any]] = []
        for each in reversed(list(java.recentProgress())):
            progress = json.loads(each.json())
            # A trigger without work reports the number of the next batch.
            if "addBatch" not in progress["durationMs"]:
                continue
            if progress["batchId"] <= self._newest:
                break
            found.append(progress)
        new = []
        for progress in reversed(found):
            self._newest = progress["batchId"]
            operators = progress["stateOperators"]
            self.late_groups += sum(o["numRowsDroppedByWatermark"] for o in operators)
            self.duplicates += sum(o["customMetrics"].get(_DUPLICATES, 0) for o in operators)
            entry = compact(progress, self._sources, rocksdb_counts=self._rocksdb_counts)
            new.append({**entry, "status": str(java.status().message())})
        self.entries += new
        return new


def compact(progress: Mapping[str, Any], sources: Sequence[str], *, rocksdb_counts: bool) -> dict[str, Any]:
    """Return one entry of ``Run.progress``.

    Args:
        progress: the JSON form of StreamingQueryProgress, Spark 4.2.
        sources: their names, in Spark's order; carriers are left out.
        rocksdb_counts: whether RocksDB counts its rows; it reports 0 where it does not.

    Returns:
        batch_id; timestamp (ISO 8601, when the trigger started); rows (read); watermark (ISO 8601, None
        before there is one); duration_ms by phase of the trigger; sources (name to rows); operators (one
        object per stateful operator: operator, rows (None when they were not counted), counted, updated,
        removed, late_groups, memory_bytes, metrics).
    """
    named = zip(sources, progress["sources"], strict=False)
    return {
        "batch_id": progress["batchId"],
        "timestamp": progress["timestamp"],
        "rows": sum(source["numInputRows"] for source in progress["sources"]),
        "watermark": _watermark(progress),
        "duration_ms": dict(progress["durationMs"]),
        "sources": {name: each["numInputRows"] for name, each in named if not name.endswith(SUFFIX)},
        "operators": [_operator(each, rocksdb_counts) for each in progress["stateOperators"]],
    }


def _operator(operator: Mapping[str, Any], rocksdb_counts: bool) -> dict[str, Any]:
    metrics = operator["customMetrics"]
    counted = rocksdb_counts or not any(name.startswith(OF_ROCKSDB) for name in metrics)
    return {
        "rows": operator["numRowsTotal"] if counted else None,
        "counted": counted,
        **{ours: operator[theirs] for ours, theirs in _OPERATOR.items()},
        "metrics": {name: value for name, value in metrics.items() if name in _CUSTOM_METRICS},
    }


def _watermark(progress: Mapping[str, Any]) -> str | None:
    text = progress.get("eventTime", {}).get("watermark")
    # Spark reports 1970 until a row has an event time.
    return text if text and datetime.fromisoformat(text).timestamp() > 0 else None
