"""Plan a batch without new data as Spark does, for rows that do not come from a source."""

from __future__ import annotations

import json

from drawdown.checkpoint.checkpoint_files import CheckpointFiles
from drawdown.checkpoint.checksums import replace_with_checksum
from drawdown.checkpoint.log_text import parse_object
from drawdown.storage import Storage


def plan_batch(storage: Storage, path: str, batch_id: int, planned_ms: int) -> None:
    """Write the offset log's entry for the batch after the last committed one, with the same end offsets.

    A query executes a planned batch first when it starts, whether or not it has data. Source (Spark 4.2):
    MicroBatchExecution.populateStartOffsets; OffsetSeqLog defines the file's content, and WatermarkTracker
    takes the watermark of the commit before.

    Args:
        path: the checkpoint, relative to the storage root.
        planned_ms: the batch's time (current_timestamp), milliseconds since 1970 UTC.

    Raises:
        RefusedError: a log file of the batch before is torn or gone.
    """
    files = CheckpointFiles(storage, path)
    watermark = max(
        files.offsets(batch_id - 1).watermark_ms, files.commit(batch_id - 1).get("nextBatchWatermarkMs", 0)
    )
    before = f"{path}/offsets/{batch_id - 1}"
    version, metadata, *offsets = storage.read_bytes(before).decode("utf-8").split("\n")
    entry = {
        **parse_object(storage, before, metadata),
        "batchWatermarkMs": watermark,
        "batchTimestampMs": planned_ms,
    }
    text = "\n".join([version, json.dumps(entry, separators=(",", ":")), *offsets])
    replace_with_checksum(storage, f"{path}/offsets/{batch_id}", text.encode())
