"""From which name on a source with `order: name` may have new files (docs/decisions/0035).

The names of its files rise with the time at which they appear. A name counts as passed when a file that is
younger than its own by more than `names_late` has been read: whatever has a smaller name appeared before the
listing that found this file, and Spark reads files in the order of their times. What is passed is not listed.
"""

from __future__ import annotations

from collections.abc import Sequence

from drawdown.checkpoint import SeenFile
from drawdown.sources.read_log import ReadLog
from drawdown.spec import Source
from drawdown.storage import Storage


def read_back(storage: Storage, source: Source, log: ReadLog) -> str:
    """Return what `listed_from` does for the end of a log, of which no more is read than this needs.

    The end of the log may know a smaller name than the whole log does: then more is listed than needed.
    """
    if not _rises(storage, source):
        log.read_all()
    after = ""
    while not after and log.read_more():
        after = listed_from(storage, source, log.files)
    return after


def listed_from(storage: Storage, source: Source, seen: Sequence[SeenFile]) -> str:
    """Return the path, below the storage's root, behind which the source is listed; empty for all its files.

    The last name that was passed is listed too: by it Spark still finds the source's partition folders.

    Args:
        seen: the files of committed batches.
    """
    if not _rises(storage, source):
        return ""
    late_ms = source.names_late.delta.total_seconds() * 1_000
    passed_ms = max((file.timestamp_ms for file in seen), default=0) - late_ms
    names = [file.path for file in seen if file.timestamp_ms < passed_ms]
    last = max(names, default="")
    return _before(storage.relative(last)) if last.startswith(f"{storage.root}/") else ""


def _rises(storage: Storage, source: Source) -> bool:
    """Whether listings of the source can begin at a name."""
    return source.order == "name" and not storage.is_local


def _before(name: str) -> str:
    """Return a name that comes before this one, with hardly any other between them."""
    last = name[-1]
    if last == "0":  # a slash comes directly before it
        return f"{name[:-1]}.~"
    return f"{name[:-1]}{chr(ord(last) - 1)}~" if "!" < last <= "~" else name[:-1]
