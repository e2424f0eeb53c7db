"""A small disk that really becomes full: a tmpfs mounted at a folder (needs the right to mount)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BALLAST = ".ballast"
_BLOCK = 4096


class SmallDisk:
    """The disk behind one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, leave: int = 0) -> None:
        """Take all space but `leave` bytes."""
        with (self._folder / _BALLAST).open("wb", buffering=0) as ballast:
            while (free := self.free - leave) >= _BLOCK:
                ballast.write(bytes(min(free // _BLOCK * _BLOCK, 1 << 20)))

    def empty(self) -> None:
        """Give back what `fill` took."""
        (self._folder / _BALLAST).unlink()

    @property
    def free(self) -> int:
        """Bytes."""
        state = os.statvfs(self._folder)
        return state.f_bavail * state.f_frsize


@contextmanager
def small_disk(folder: Path, size: str = "24m") -> Iterator[SmallDisk]:
    """A disk of that size at a folder, which is made; unmounted at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
