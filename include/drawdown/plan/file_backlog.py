"""What waits at a file source: one listing against the checkpoint's log of seen files.

Source (Spark 4.2): FileStreamSource.SeenFilesMap. A file is new when its path is not in the log and
it is not more than ``maxFileAge`` (default 7 days) older than the newest file ever seen: Spark ignores
older ones for ever, so they are counted apart and are no reason to start.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from drawdown.checkpoint import SeenFile, plain_path
from drawdown.plan.file_listing import list_source_files
from drawdown.plan.findings import Finding
from drawdown.spec import Source
from drawdown.storage import Storage

_AGE = re.compile(r"\s*(\d+)\s*(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE)
_UNIT_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def file_backlog(storage: Storage, source: Source, seen: Sequence[SeenFile]) -> Finding:
    """New files of a source, with `seen` as the checkpoint's log has them (empty: no checkpoint yet).

    Raises:
        RefusedError, SourceError: the listing failed.
    """
    options = {name.lower(): value for name, value in source.options.items()}
    path = source.path or ""
    try:
        listed = list_source_files(storage, path, options)
    except FileNotFoundError:
        return Finding((f"{storage.path(path)} does not exist",))
    names_only = str(options.get("filenameonly", False)).lower() == "true"
    oldest = max((file.timestamp_ms for file in seen), default=0) - _max_age_ms(options)
    known = {_key(file.path, names_only) for file in seen if file.timestamp_ms >= oldest}
    unseen = [info for info in listed if _key(plain_path(info.path), names_only) not in known]
    new = [info for info in unseen if info.mtime_ms >= oldest]
    backlog = {
        "files": len(new),
        "bytes": sum(info.size for info in new),
        "too_old": _too_old(unseen, new, seen, names_only),
    }
    return Finding((f"{len(new)} new file(s) in {storage.path(path)}",) if new else (), backlog)


def _too_old(unseen: Sequence[Any], new: Sequence[Any], seen: Sequence[SeenFile], names_only: bool) -> int:
    if len(unseen) == len(new):
        return 0
    ever = {_key(file.path, names_only) for file in seen}
    ignored = {info.path for info in unseen} - {info.path for info in new}
    return sum(_key(plain_path(path), names_only) not in ever for path in ignored)


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
