"""The backlog of a file source, and whether it needs a run."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from drawdown.sources.committed_offsets import SourceProgress
from drawdown.sources.existing_path import existing_path
from drawdown.sources.files.new_files import MarksOf, arrivals
from drawdown.sources.files.notified.arrived import notified
from drawdown.sources.files.notified.listing import SourceListing
from drawdown.sources.findings import SourceFinding
from drawdown.sources.read_log import ReadLog
from drawdown.storage import Storage
from drawdown.values.text import counted


def waiting(at: SourceProgress) -> SourceFinding:
    """Return what waits at a source of files; see `file_backlog`. Raises SourceError."""
    existing_path(at.workspace.project, at.pipeline, at.name)
    marks_of = partial(at.past.marks, at.workspace.metastore, at.name)
    found = notified(at)
    listing = SourceListing(Storage.of_source(at.workspace.project, at.source), at.source, found)
    finding = file_backlog(listing, at.past.read_log(at.name), marks_of)
    if found is None or found.names is not None or found.kept is None or at.past.checkpoint is None:
        return finding
    # Only a run may note that it has listed all.
    return replace(finding, reasons=(*finding.reasons, f"all files are listed: {found.why}"))


def file_backlog(listing: SourceListing, log: ReadLog, marks_of: MarksOf) -> SourceFinding:
    """Count the new files of a source, and read files that were rewritten; see `arrivals` for the arguments.

    Files that Spark ignores because of their age are counted separately and are no reason to start.

    Raises:
        RefusedError, SourceError: the listing failed.
    """
    path = listing.storage.path(listing.source.path or "")
    now_ms = time.time() * 1_000
    try:
        found = arrivals(listing, log, marks_of, now_ms)
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
