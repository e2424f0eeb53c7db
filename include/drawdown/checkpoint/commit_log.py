"""One file of ``commits/``: what Spark recorded when a batch was committed.

Source: org.apache.spark.sql.execution.streaming.checkpointing.CommitLog (Spark 4.2).
"""

from __future__ import annotations

from typing import Any

from drawdown.checkpoint.log_text import parse_object, read_lines
from drawdown.storage import Storage

_NEWEST_VERSION = 2


def read_commit(storage: Storage, path: str) -> dict[str, Any]:
    """Return ``nextBatchWatermarkMs``, in milliseconds since 1970 UTC, and ``stateUniqueIds``.

    The latter only with state store checkpoint format 2.

    Raises:
        FileNotFoundError: there is none.
        RefusedError: see CheckpointFiles.
    """
    _, lines = read_lines(storage, path, _NEWEST_VERSION)
    return parse_object(storage, path, lines[0]) if lines and lines[0].strip() else {}
