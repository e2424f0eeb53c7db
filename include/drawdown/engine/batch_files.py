"""The files of a batch must be there when it runs: Spark reads over those that are gone.

FileStreamSource lists a batch's files with checkFilesExist=false, and what the listing does not find is no
error (Spark 4.2): a file deleted between its discovery and its batch would be marked as read, rows unseen.
A file that goes after the listing fails the read itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drawdown.checkpoint import CheckpointFiles, log_offset
from drawdown.errors import SourceError
from drawdown.spec import Pipeline
from drawdown.storage import Storage

_SHOWN = 3


def refuse_missing_files(
    pipeline: Pipeline,
    storage: Storage,
    files: CheckpointFiles,
    source_order: Sequence[str],
    before: Sequence[Any],
    now: Sequence[Any],
) -> None:
    """Raise SourceError ``source.gone`` when a file that the batch reads is not there any more.

    Args:
        source_order: names by the sources' numbers in the checkpoint.
        before, now: offsets of the batch before (empty for none) and of this one, by number.
    """
    for folder, name in enumerate(dict.fromkeys(source_order)):
        number = source_order.index(name)
        start, end = log_offset(before[number] if before else None), log_offset(now[number])
        if end is None:
            continue
        seen = files.source_files(folder, 0 if start is None else start + 1, end)
        gone = [file.path for file in seen if not storage.exists(storage.relative(file.path))]
        if gone:
            raise SourceError(
                "source.gone",
                f"{len(gone)} file(s) of the batch are gone: {', '.join(gone[:_SHOWN])}",
                where=f"pipeline {pipeline.name}, source {name}",
                do="bring the file back and run again: the batch keeps its files until it is committed",
            )
