"""The progress of a run, gathered while it goes on: Spark keeps only that of the newest 100 batches."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from drawdown.metastore.operations.runs import PROGRESS_KEPT
from drawdown.query.carriers import SUFFIX

# Of StreamingDeduplicateExec and StreamingDeduplicateWithinWatermarkExec.
_DUPLICATES = "numDroppedDuplicateRows"

# Of the dozens that state stores report: what says that rows were dropped or that memory did not do.
_CUSTOM_METRICS = frozenset({
    _DUPLICATES, "numRowsReadDuringEviction", "loadedMapCacheHitCount",
    "loadedMapCacheMissCount", "rocksdbBytesCopied", "rocksdbReadBlockCacheHitCount",
    "rocksdbReadBlockCacheMissCount", "rocksdbSstFileSize", "rocksdbTotalBytesWritten",
})  # fmt: skip
_OPERATOR = {
    "operator": "operatorName",
    "rows": "numRowsTotal",
    "updated": "numRowsUpdated",
    "removed": "numRowsRemoved",
    "late_groups": "numRowsDroppedByWatermark",
    "memory_bytes": "memoryUsedBytes",
}


class RunProgress:
    """What Spark said of each batch of one query (StreamingQueryProgress), in a compact form.

    Attributes:
        late_groups: numRowsDroppedByWatermark over the whole run: groups, counted after partial
            aggregation.
        duplicates: numDroppedDuplicateRows over the whole run: rows that a deduplication dropped.
        entries: the last batches, as many as a run record keeps, oldest first; see ``compact``. Each
            has, as ``status``, what the query was doing when the entry was made, in Spark's words
            (StreamingQueryStatus).
    """

    def __init__(self, query: StreamingQuery, source_order: Sequence[str]) -> None:
        self._query = query
        # Spark reports a source once, also where the transform reads it twice.
        self._sources = tuple(dict.fromkeys(source_order))
        self._newest = -1
        self.late_groups = 0
        self.duplicates = 0
        self.entries: deque[dict[str, Any]] = deque(maxlen=PROGRESS_KEPT)

    def look(self) -> list[dict[str, Any]]:
        """Take in the batches that ended since the last look; call it more often than every 100 batches.

        Returns:
            Their entries, oldest first.
        """
        java: Any = self._query._jsq
        found: list[Mapping[str, Any]] = []
        for each in reversed(list(java.recentProgress())):
            progress = json.loads(each.json())
            # A trigger that found nothing to do reports the number of the batch to come.
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
            new.append({**compact(progress, self._sources), "status": str(java.status().message())})
        self.entries += new
        return new


def compact(progress: Mapping[str, Any], sources: Sequence[str]) -> dict[str, Any]:
    """One entry of ``Run.progress``.

    Args:
        progress: the JSON form of StreamingQueryProgress, Spark 4.2.
        sources: their names, in Spark's order; carriers are left out.

    Returns:
        batch_id; timestamp (ISO 8601, when the trigger started); rows (read); watermark (ISO 8601, None
        before there is one); duration_ms by phase of the trigger; sources (name to rows); operators (one
        object per stateful operator: operator, rows, updated, removed, late_groups, memory_bytes, metrics).
    """
    named = zip(sources, progress["sources"], strict=False)
    return {
        "batch_id": progress["batchId"],
        "timestamp": progress["timestamp"],
        "rows": sum(source["numInputRows"] for source in progress["sources"]),
        "watermark": _watermark(progress),
        "duration_ms": dict(progress["durationMs"]),
        "sources": {name: each["numInputRows"] for name, each in named if not name.endswith(SUFFIX)},
        "operators": [_operator(operator) for operator in progress["stateOperators"]],
    }


def _operator(operator: Mapping[str, Any]) -> dict[str, Any]:
    entry = {ours: operator[theirs] for ours, theirs in _OPERATOR.items()}
    entry["metrics"] = {k: v for k, v in operator["customMetrics"].items() if k in _CUSTOM_METRICS}
    return entry


def _watermark(progress: Mapping[str, Any]) -> str | None:
    text = progress.get("eventTime", {}).get("watermark")
    # 1970 is what Spark says before any row has shown an event time.
    return text if text and datetime.fromisoformat(text).timestamp() > 0 else None
