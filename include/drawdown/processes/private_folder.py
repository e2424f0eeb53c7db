"""Folders that only their owner may read: logs, run files."""

from __future__ import annotations

import os
from pathlib import Path

_PRIVATE = 0o700


def private_folder(folder: Path) -> Path:
    """Make the folder if it is missing, and close one of ours that others may read."""
    folder.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
    found = folder.stat()
    # mkdir does not change an existing folder, and earlier versions of set-up made it readable for all.
    if found.st_mode & 0o077 and found.st_uid == os.geteuid():
        folder.chmod(_PRIVATE)
    return folder
