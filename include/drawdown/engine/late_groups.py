"""Late groups of a run, gathered while it goes on: Spark keeps the progress of the newest 100 batches."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.query import StreamingQuery


class LateGroups:
    """Spark's numRowsDroppedByWatermark over a run: groups, counted after partial aggregation."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query: Any = query._jsq
        self._newest = -1
        self.total = 0

    def look(self) -> None:
        """Add the batches that ended since the last look; call it more often than every 100 batches."""
        newest = self._newest
        for progress in reversed(list(self._query.recentProgress())):
            batch_id = int(progress.batchId())
            if batch_id <= self._newest:
                break
            newest = max(newest, batch_id)
            self.total += sum(int(o.numRowsDroppedByWatermark()) for o in progress.stateOperators())
        self._newest = newest
