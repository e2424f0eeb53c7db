"""What a watch with Spark's own sink leaves behind, and how the next run continues.

The metastore has no record of its batches. The watch's run record says so, and the next run records the last
batch as a baseline: published, without counts. In every other case, batches that are missing from the
metastore are an error.
"""

from __future__ import annotations

import json
import time

from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch, Lease
from drawdown.workspace import Generation


def note_baseline(generation: Generation, lease: Lease) -> None:
    """Record the last committed batch as the baseline after an uncounted watch, if there was one."""
    files, name = generation.files, generation.pipeline.name
    last, watch = files.last_commit_batch(), generation.metastore.uncounted_watch(name, generation.number)
    if last is None or watch is None:
        return
    baseline = Batch(
        name,
        generation.number,
        last,
        watch.run_id,
        lease.epoch,
        offsets_to=files.offsets(last).offsets,
        status="published",
    )
    generation.metastore.note_batch(lease, baseline, [], {})


def complete_offsets(generation: Generation) -> None:
    """Add the metadata line that continuous processing leaves empty to the newest offset file.

    Without it Spark 4.2 cannot start a micro-batch query there, although its guide says that any trigger
    may follow any other: MicroBatchExecution makes its WatermarkTracker from that line. A continuous query
    keeps no state, so the settings in that line do not matter; the offsets do not change.
    """
    files, storage = generation.files, generation.storage
    newest = files.last_offset_batch()
    if newest is None or files.offsets(newest).metadata:
        return
    path = f"{generation.path}/offsets/{newest}"
    version, _, *offsets = storage.read_bytes(path).decode().split("\n")
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1_000), "conf": {}}
    # Hadoop's checksum file belongs to the old content and would reject the new.
    checksum = f"{generation.path}/offsets/.{newest}.crc"
    if storage.exists(checksum):
        storage.delete(checksum)
    storage.write_atomic(path, "\n".join([version, json.dumps(metadata), *offsets]).encode())


def refuse_gaps(generation: Generation) -> None:
    """Refuse a checkpoint whose last two offset files are not of consecutive batches.

    Raises:
        RefusedError: ``checkpoint.gaps``: asynchronous progress tracking did not write every batch, and
            Spark asks for the one before the last ("batch x doesn't exist").
    """
    last_two = generation.files.offset_batches()[-2:]
    name = generation.pipeline.name
    if len(last_two) == 2 and last_two[1] - last_two[0] != 1:
        raise RefusedError(
            "checkpoint.gaps",
            f"the offsets of batch {last_two[1] - 1} of {name} were never written: the checkpoint"
            " comes from asynchronous progress tracking",
            where=generation.storage.path(generation.path),
            do="set asyncProgressTrackingEnabled: true and asyncProgressTrackingCheckpointIntervalMs: 0"
            f" again, run `drawdown watch {name}` for two batches, then remove both",
        )
