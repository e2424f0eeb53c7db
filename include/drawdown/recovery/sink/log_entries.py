"""Rebuilds entries of a file sink's log from the files that the metastore recorded for its batches.

Source: org.apache.spark.sql.execution.streaming.sinks.SinkFileStatus (Spark 4.2).
"""

from __future__ import annotations

import json

from drawdown.checkpoint.roots import spelled
from drawdown.metastore.records import StagedFile
from drawdown.workspace import Generation

_BLOCK_SIZE = 32 * 1024 * 1024
_COMPACT = ".compact"


def sink_entry(generation: Generation, name: str) -> bytes | None:
    """Return the content of entry ``N`` or ``N.compact``; None if one of its batches or files is unknown."""
    entry = int(name.removesuffix(_COMPACT))
    first = 0 if name.endswith(_COMPACT) else entry
    noted = {batch.batch_id for batch in generation.batches(first_batch=first)}
    wanted = range(first, entry + 1)
    if not noted.issuperset(wanted):
        return None
    files = [file for _, file in generation.staged_files(wanted, "output")]
    lines = [_line(generation, file) for file in files]
    if None in lines:
        return None
    return "\n".join(["v1", *(line for line in lines if line is not None)]).encode()


def _line(generation: Generation, file: StagedFile) -> str | None:
    storage = generation.storage
    info = next(iter(storage.walk(storage.relative(file.path))), None)
    if info is None or info.size != file.size:
        return None
    values = {
        "path": spelled(file.path),
        "size": file.size,
        "isDir": False,
        "modificationTime": info.mtime_ms,
        "blockReplication": 1,
        "blockSize": _BLOCK_SIZE,
        "action": "add",
    }
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
