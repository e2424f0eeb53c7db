"""What a watch with Spark's own sink leaves behind, and how the next run goes on from it.

Its batches were not noted one by one. The record of the watch says so, and the next run notes the last of
them as a baseline: a published batch without counts. Only such a watch excuses batches that the
metastore never heard of.
"""

from __future__ import annotations

import json
import time

from drawdown.errors import RefusedError
from drawdown.metastore.records import Batch, Lease
from drawdown.workspace import Generation


def note_baseline(generation: Generation, lease: Lease) -> None:
    """Note the last committed batch as the end of an uncounted watch, when there was one."""
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
    """Give the newest offset file the line of metadata that continuous processing leaves empty.

    Without it Spark 4.2 cannot start a micro-batch query there, although its guide says that any trigger
    may follow any other: MicroBatchExecution makes its WatermarkTracker from that line. Such a query keeps
    no state, so no setting in it matters; the offsets stay as they are.
    """
    files, storage = generation.files, generation.storage
    newest = files.last_offset_batch()
    if newest is None or files.offsets(newest).metadata:
        return
    path = f"{generation.path}/offsets/{newest}"
    version, _, *offsets = storage.read_bytes(path).decode().split("\n")
    metadata = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1_000), "conf": {}}
    # Hadoop's checksum of the old text would refuse the new one.
    checksum = f"{generation.path}/offsets/.{newest}.crc"
    if storage.exists(checksum):
        storage.delete(checksum)
    storage.write_atomic(path, "\n".join([version, json.dumps(metadata), *offsets]).encode())


def refuse_gaps(generation: Generation) -> None:
    """The last two offset files are of two batches that follow each other, or there is one.

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
            do="say asyncProgressTrackingEnabled: true and asyncProgressTrackingCheckpointIntervalMs: 0 once"
            f" more, `drawdown watch {name}` for two batches, then remove both",
        )
