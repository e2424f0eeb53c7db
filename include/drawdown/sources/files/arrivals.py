"""What stands at a file source: one listing against what the checkpoint and the metastore know of its files.

Source (Spark 4.2): FileStreamSource.SeenFilesMap. A file is new when its path is not in the log and
it is not more than ``maxFileAge`` (default 7 days) older than the newest file ever seen: Spark ignores
older ones forever. A file that is in the log is not read again, whatever has become of it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drawdown.checkpoint import SeenFile, plain_path
from drawdown.metastore.records import FileMark
from drawdown.sources.files.listing import list_source_files
from drawdown.spec import Source
from drawdown.storage import FileInfo, Storage

CLOCK_SKEW_MS = 600_000
"""A file this much ahead of the present is not from the future: clocks of writer and driver differ."""

_AGE = re.compile(r"\s*(\d+)\s*(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE)
_UNIT_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class FileArrivals:
    """The files of one source that matter to its next run.

    Attributes:
        new: what Spark would read.
        too_old: what it passes over forever.
        rewritten: read by a committed batch, and changed since.
        replaced: new to Spark, but changed since a batch first read it: that batch was not committed, or
            is longer ago than ``maxFileAge``.
        from_future: new, with a time of modification ahead of the clock.
        settled_ms: when the youngest of `new` has reached the source's ``settle``, milliseconds since 1970
            UTC; 0 without ``settle``.
    """

    new: Sequence[FileInfo] = ()
    too_old: Sequence[FileInfo] = ()
    rewritten: Sequence[FileInfo] = ()
    replaced: Sequence[FileInfo] = ()
    from_future: Sequence[FileInfo] = ()
    settled_ms: int = 0


def arrivals(
    storage: Storage,
    source: Source,
    seen: Sequence[SeenFile],
    marks: Mapping[str, FileMark],
    now_ms: float,
) -> FileArrivals:
    """Sort the files of one listing.

    Args:
        seen: the log's files of committed batches; empty when there is no checkpoint yet.
        marks: what files looked like when a batch first read them, by path.

    Raises:
        FileNotFoundError: a path without wildcards that does not exist.
        RefusedError, SourceError: the listing failed.
    """
    options = {name.lower(): value for name, value in source.options.items()}
    listed = list_source_files(storage, source.path or "", options)
    names_only = str(options.get("filenameonly", False)).lower() == "true"
    oldest = max((file.timestamp_ms for file in seen), default=0) - _max_age_ms(options)
    read = {_key(file.path, names_only): file.timestamp_ms for file in seen}
    new, too_old, rewritten = [], [], []
    for info in listed:
        path = plain_path(info.path)
        then = read.get(_key(path, names_only))
        if info.mtime_ms >= oldest and (then is None or then < oldest):
            # Spark forgets what it read too long ago: rewritten since then, a file is new to it.
            new.append(info)
        elif then is None:
            too_old.append(info)
        elif not names_only and differs(info, marks.get(path) or FileMark(info.size, then)):
            # By their names alone, files of two folders are one.
            rewritten.append(info)
    tolerated = now_ms + CLOCK_SKEW_MS
    settle_ms = source.settle.delta.total_seconds() * 1_000 if source.settle else 0
    present = [info.mtime_ms for info in new if info.mtime_ms <= tolerated]
    return FileArrivals(
        new,
        too_old,
        rewritten,
        [info for info in new if (mark := marks.get(plain_path(info.path))) and differs(info, mark)],
        [info for info in new if info.mtime_ms > tolerated],
        int(max(present) + settle_ms) if settle_ms and present else 0,
    )


def differs(info: FileInfo, mark: FileMark) -> bool:
    """Whether a file is not the one that was read."""
    return (info.size, info.mtime_ms) != (mark.size, mark.mtime_ms)


def _key(path: str, names_only: bool) -> str:
    return posixpath.basename(path) if names_only else path


def _max_age_ms(options: Mapping[str, Any]) -> float:
    """Spark's maxFileAge; infinite with latestFirst and a limit, and for text only Spark can read."""
    latest_first = str(options.get("latestfirst", False)).lower() == "true"
    limited = "maxfilespertrigger" in options or "maxbytespertrigger" in options
    age = _AGE.fullmatch(str(options.get("maxfileage", "7d")))
    if age is None or (latest_first and limited):
        return float("inf")
    return int(age[1]) * _UNIT_MS[(age[2] or "ms").lower()]
