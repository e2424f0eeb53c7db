"""Folders that only their owner may read: logs, run files."""

from __future__ import annotations

import os
from pathlib import Path

_PRIVATE = 0o700


def private_folder(folder: Path) -> Path:
    """Make the folder if it is missing; one of ours that others may read is closed to them."""
    folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    found = folder.stat()
    # mkdir leaves a folder alone that is there already: before, set-up made it for everybody.
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        folder.chmod(_PRIVATE)
    return folder
