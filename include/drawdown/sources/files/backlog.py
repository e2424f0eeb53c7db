"""The backlog of a file source, and whether it needs a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from drawdown.checkpoint import SeenFile
from drawdown.metastore.records import FileMark
from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.existing_path import existing_path
from drawdown.sources.files.new_files import arrivals
from drawdown.sources.findings import SourceFinding
from drawdown.spec import Source
from drawdown.storage import Storage
from drawdown.values.text import counted


def waiting(at: SourceProgress) -> SourceFinding:
    """Return what waits at a source of files; see `file_backlog`. Raises SourceError."""
    existing_path(at.workspace.project, at.pipeline, at.name)
    seen, marks = at.past.read_files(at.name), at.past.marks(at.workspace.metastore, at.name)
    return file_backlog(Storage.of_source(at.workspace.project, at.source), at.source, seen, marks)


def file_backlog(
    storage: Storage, source: Source, seen: Sequence[SeenFile], marks: Mapping[str, FileMark]
) -> SourceFinding:
    """Count the new files of a source, and read files that were rewritten; see `arrivals` for the arguments.

    Files that Spark ignores because of their age are counted separately and are no reason to start.

    Raises:
        RefusedError, SourceError: the listing failed.
    """
    path = storage.path(source.path or "")
    now_ms = time.time() * 1_000
    try:
        found = arrivals(storage, source, seen, marks, now_ms)
    except FileNotFoundError:
        return SourceFinding((f"{path} does not exist",))
    backlog = {
        "files": len(found.new),
        "bytes": sum(info.size for info in found.new),
        "too_old": len(found.too_old),
        **({"rewritten": len(found.rewritten)} if found.rewritten else {}),
        **({"oldest": _moment(min(info.mtime_ms for info in found.new))} if found.new else {}),
    }
    reasons = [f"{counted(len(found.new), 'new file')} in {path}"] if found.new else []
    if found.rewritten:
        reasons.append(f"rewritten after they were read: {counted(len(found.rewritten), 'file')} in {path}")
    return SourceFinding(tuple(reasons), backlog, found.settled_ms if found.settled_ms > now_ms else 0)


def _moment(at_ms: float) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat()
