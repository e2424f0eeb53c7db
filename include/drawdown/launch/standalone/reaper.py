"""Ends clusters that nobody will end: past their time, or with a supervisor that was killed.

A supervisor ends its cluster itself when its time is up, so there is work here only after something that no
process outlives: SIGKILL, a machine that went down.
"""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from drawdown.launch.standalone.cluster_folder import MARK, ClusterFolder, clusters_dir
from drawdown.processes.descendants import kill_marked
from drawdown.spec import Project

_LATE = 60.0
"""Seconds past its time until a supervisor has had its chance."""

_BEING_MADE = 60.0
"""Seconds that a folder without a record may be one that is only being made."""

_LOGS_FOR = 7 * 86_400.0
"""Seconds that the log of a cluster that died is kept."""


def reap(project: Project, *, dry: bool = False) -> list[str]:
    """End what is left over; a sentence for each cluster that was. Those of other machines are left alone.

    Args:
        dry: only look; the sentences are the same.
    """
    if dry:
        found = left_over(project)
    else:
        _remove_old_logs(project.state_dir.resolve() / "logs" / "clusters")
        found = {folder: _reaped(folder) for folder in _folders(project)}
    return [f"cluster {folder.path.name} {why}: ended" for folder, why in found.items() if why]


def left_over(project: Project) -> dict[ClusterFolder, str]:
    """The clusters that nobody will end, and why; nothing is touched."""
    found = {folder: _why(folder, _age(folder), kept=folder.is_kept()) for folder in _folders(project)}
    return {folder: why for folder, why in found.items() if why}


def _folders(project: Project) -> list[ClusterFolder]:
    there = clusters_dir(project.state_dir)
    return [ClusterFolder(path) for path in sorted(there.iterdir())] if there.is_dir() else []


def _reaped(folder: ClusterFolder) -> str:
    """Why a cluster was ended, empty when it was not."""
    age = _age(folder)
    try:
        lock = folder.lock()
    except FileNotFoundError:
        return ""
    try:
        why = _why(folder, age, kept=lock is None)
        if why and lock is None:
            folder.end()
        elif why:
            kill_marked(MARK, str(folder.path))
            folder.remove()
    finally:
        if lock is not None:
            os.close(lock)
    return why


def _why(folder: ClusterFolder, age: float, *, kept: bool) -> str:
    """Why nobody will end a cluster of this machine; empty when somebody will.

    Args:
        age: seconds since the folder was changed.
        kept: whether its supervisor lives.
    """
    record = folder.record()
    if record is None:
        return "" if kept or age < _BEING_MADE else "had lost its supervisor"
    if record.machine != platform.node():
        return ""
    if not kept:
        return "had lost its supervisor"
    return "was past its time" if time.time() >= record.until + _LATE else ""


def _age(folder: ClusterFolder) -> float:
    """0 when it has gone meanwhile."""
    try:
        return time.time() - folder.path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _remove_old_logs(there: Path) -> None:
    for log in there.glob("*.log"):
        if time.time() - log.stat().st_mtime > _LOGS_FOR:
            log.unlink(missing_ok=True)
