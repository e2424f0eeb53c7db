"""End abandoned clusters: those past their time, or whose supervisor was killed.

A supervisor ends its cluster itself when its time is up, so this is only needed after a SIGKILL or a crash of
the machine.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from drawdown.launch.standalone.cluster_folder import MARK, ClusterFolder, clusters_dir
from drawdown.processes.descendants import kill_marked
from drawdown.spec import Project

_LATE = 60.0
"""Seconds past its time that a supervisor gets to end its cluster."""

_ELSEWHERE = 86_400.0
"""The same on another machine, whose clock may differ, and whose suspended supervisor may come back."""

_BEING_MADE = 60.0
"""Seconds during which a folder without a record may still be in creation."""

_LOGS_FOR = 7 * 86_400.0
"""Seconds for which the log of a dead cluster is kept."""


def reap(project: Project, *, dry: bool = False) -> list[str]:
    """End abandoned clusters of this machine and return a sentence for each.

    Args:
        dry: end nothing, but return the same sentences.
    """
    if dry:
        found = left_over(project)
    else:
        _remove_old_logs(project.state_dir.resolve() / "logs" / "clusters")
        found = {folder: _reaped(folder) for folder in _folders(project)}
    return [f"cluster {folder.path.name} {why}: ended" for folder, why in found.items() if why]


def left_over(project: Project) -> dict[ClusterFolder, str]:
    """Return the abandoned clusters, and why they are; changes nothing."""
    found = {folder: _why(folder, _age(folder), kept=folder.is_kept()) for folder in _folders(project)}
    return {folder: why for folder, why in found.items() if why}


def _folders(project: Project) -> list[ClusterFolder]:
    there = clusters_dir(project.state_dir)
    return [ClusterFolder(path) for path in sorted(there.iterdir())] if there.is_dir() else []


def _reaped(folder: ClusterFolder) -> str:
    """End a cluster if it is abandoned; return why, or an empty text."""
    age = _age(folder)
    try:
        lock = folder.lock()
    except FileNotFoundError:
        return ""
    try:
        why, record = _why(folder, age, kept=lock is None), folder.record()
        if why and record is not None and not record.is_of_this_kernel:
            folder.remove()
        elif why and lock is None:
            folder.end()
        elif why:
            kill_marked(MARK, str(folder.path))
            folder.remove()
    finally:
        if lock is not None:
            os.close(lock)
    return why


def _why(folder: ClusterFolder, age: float, *, kept: bool) -> str:
    """Return why a cluster is abandoned; empty when it is not, or when another machine has to say.

    Args:
        age: seconds since the folder changed.
        kept: whether its supervisor is alive.
    """
    record = folder.record()
    if record is None:
        return "" if kept or age < _BEING_MADE else "had lost its supervisor"
    over = time.time() >= record.until + _LATE
    if not record.is_of_this_kernel:
        # Another machine, or this one before its last start: no cluster lives longer, whosever it was.
        return "was past its time" if over and time.time() >= record.until + _ELSEWHERE else ""
    if not kept:
        return "had lost its supervisor"
    return "was past its time" if over and record.is_here else ""


def _age(folder: ClusterFolder) -> float:
    """Return the folder's age in seconds; 0 when it no longer exists."""
    try:
        return time.time() - folder.path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _remove_old_logs(there: Path) -> None:
    for log in there.glob("*.log"):
        if time.time() - log.stat().st_mtime > _LOGS_FOR:
            log.unlink(missing_ok=True)
