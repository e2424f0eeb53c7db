"""Removes leftovers of killed applications outside of tables, recognised only by their age."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from drawdown.processes.scratch import left_over, remove_left_over
from drawdown.spec import Project
from drawdown.storage import FileInfo
from drawdown.workspace import Generation

_LOG_BYTES = 64 * 2**20


def leftovers(generation: Generation, now: datetime) -> list[FileInfo]:
    """Return files of replays that were killed before their commit; running the replay again rewrites them.

    Files of active replays are excluded: `vacuum` is longer than a task may take.
    """
    until_ms = (now - generation.project.upkeep.vacuum.delta).timestamp() * 1_000
    below = generation.storage.walk(f"{generation.folder}/replays")
    return [info for info in below if info.mtime_ms < until_ms]


def tidy_machine(project: Project, *, dry: bool) -> list[str]:
    """Clean up this machine: remove folders of killed runs, and rotate a long log.

    Returns:
        One sentence per action.
    """
    said = []
    for folder in _old_folders(project):
        said.append(f"removed {folder}, of a run whose guard was killed")
        if not dry:
            shutil.rmtree(folder, ignore_errors=True)
    for archive in _old_archives(project):
        said.append(f"removed {archive}, which no application has used for a while")
        if not dry:
            archive.unlink(missing_ok=True)
    found = left_over() if dry else remove_left_over()
    said += [f"removed {folder}, temporary files of a run that was killed" for folder in found]
    log = project.state_dir / "logs" / "spark.log"
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        said.append(f"set {log} aside as {log.name}.old")
        if not dry:
            log.replace(log.with_name(f"{log.name}.old"))
    return said


def _old_folders(project: Project) -> Iterator[Path]:
    return _older_than_vacuum(project, project.state_dir / "runs", "run-*")


def _old_archives(project: Project) -> Iterator[Path]:
    """Yield archives of Python code whose last application began longer ago than one may take."""
    return _older_than_vacuum(project, project.state_dir / "library", "*-*.*")


def _older_than_vacuum(project: Project, folder: Path, pattern: str) -> Iterator[Path]:
    # By this machine's clock, which the file system also uses.
    until = time.time() - project.upkeep.vacuum.delta.total_seconds()
    for path in sorted(folder.glob(pattern)):
        if path.stat().st_mtime < until:
            yield path
