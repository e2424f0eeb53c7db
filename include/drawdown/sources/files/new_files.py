"""The files at a source: a listing compared with what the checkpoint and the metastore know.

Source (Spark 4.2): FileStreamSource.SeenFilesMap. A file is new when its path is not in the log and
it is not more than ``maxFileAge`` (default 7 days) older than the newest file ever seen: Spark ignores
older ones forever. A file that is in the log is not read again, even if it changed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drawdown.checkpoint import plain_path
from drawdown.metastore.records import FileMark
from drawdown.sources.files.notified.listing import SourceListing
from drawdown.sources.read_log import ReadLog
from drawdown.storage import FileInfo
from drawdown.values.duration import option_ms

MarksOf = Callable[[Collection[str] | None], Mapping[str, FileMark]]
"""Returns the marks of files by path: of these, or of all."""

# Above that, one query for all is quicker than many for some.
_FEW = 10_000
CLOCK_SKEW_MS = 600_000
"""Milliseconds that a file may be ahead of the present: the clocks of writer and driver differ."""


@dataclass(frozen=True)
class FileArrivals:
    """The files of one source that matter to its next run.

    Attributes:
        new: files that Spark would read.
        too_old: files that Spark ignores forever.
        rewritten: files that a committed batch has read and that changed since.
        replaced: files that are new to Spark, but changed since a batch first read them: that batch was not
            committed, or is longer ago than ``maxFileAge``.
        from_future: new files with a modification time ahead of the clock.
        settled_ms: when the youngest of `new` reaches the age in the source's ``settle``, milliseconds since
            1970 UTC; 0 without ``settle``.
        after: the name behind which files were listed, see `listed_from`; empty when all were.
    """

    new: Sequence[FileInfo] = ()
    too_old: Sequence[FileInfo] = ()
    rewritten: Sequence[FileInfo] = ()
    replaced: Sequence[FileInfo] = ()
    from_future: Sequence[FileInfo] = ()
    settled_ms: int = 0
    after: str = ""


def arrivals(
    listing: SourceListing,
    log: ReadLog,
    marks_of: MarksOf,
    now_ms: float,
) -> FileArrivals:
    """List the files of a source and sort them.

    Args:
        log: the files of committed batches; empty when there is no checkpoint yet.
        marks_of: returns size and time of files when a batch first read them.

    Raises:
        FileNotFoundError: a path without wildcards that does not exist.
        RefusedError, SourceError: the listing failed.
    """
    options, settle = listing.options, listing.source.settle
    names_only = str(options.get("filenameonly", False)).lower() == "true"
    listed, after = listing.files(log)
    _read_until_explained(listed, log, names_only)
    oldest = log.youngest_ms - _max_age_ms(options)
    read = {_key(file.path, names_only): file.timestamp_ms for file in log.files}
    paths = [plain_path(info.path) for info in listed]
    marks = marks_of(paths if len(paths) <= _FEW else None)
    new, too_old, rewritten = [], [], []
    for info in listed:
        path = plain_path(info.path)
        then = read.get(_key(path, names_only))
        if info.mtime_ms >= oldest and (then is None or then < oldest):
            # Spark forgets what it read too long ago: a file that was rewritten since is new to it.
            new.append(info)
        elif then is None:
            too_old.append(info)
        elif not names_only and differs(info, marks.get(path) or FileMark(info.size, then)):
            # By name alone, files of the same name in two folders look the same.
            rewritten.append(info)
    tolerated = now_ms + CLOCK_SKEW_MS
    settle_ms = settle.delta.total_seconds() * 1_000 if settle else 0
    present = [info.mtime_ms for info in new if info.mtime_ms <= tolerated]
    return FileArrivals(
        new,
        too_old,
        rewritten,
        [info for info in new if (mark := marks.get(plain_path(info.path))) and differs(info, mark)],
        [info for info in new if info.mtime_ms > tolerated],
        int(max(present) + settle_ms) if settle_ms and present else 0,
        after,
    )


def _read_until_explained(listed: Sequence[FileInfo], log: ReadLog, names_only: bool) -> None:
    """Read the log back until each listed file is known to be read, or is younger than all that were read.

    Spark reads in the order of the files' times, so a younger one is in no earlier entry.
    """
    while True:
        read = {_key(file.path, names_only) for file in log.files}
        youngest_ms = log.youngest_ms
        if all(
            info.mtime_ms > youngest_ms or _key(plain_path(info.path), names_only) in read for info in listed
        ):
            return
        if not log.read_more():
            return


def differs(info: FileInfo, mark: FileMark) -> bool:
    """Whether a file changed since it was read."""
    return (info.size, info.mtime_ms) != (mark.size, mark.mtime_ms)


def _key(path: str, names_only: bool) -> str:
    return posixpath.basename(path) if names_only else path


def _max_age_ms(options: Mapping[str, Any]) -> float:
    """Return Spark's maxFileAge; infinite with latestFirst and a limit, and for text that we cannot parse."""
    latest_first = str(options.get("latestfirst", False)).lower() == "true"
    limited = "maxfilespertrigger" in options or "maxbytespertrigger" in options
    age = option_ms(options.get("maxfileage", "7d"))
    return float("inf") if age is None or (latest_first and limited) else age
