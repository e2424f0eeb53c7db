"""The local file system: fast listing that follows no link out of the root, atomic and private writes."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from drawdown.storage.containment import check_target
from drawdown.storage.files import Found

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700


class LocalFiles:
    """The files below a folder of this machine."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def _path(self, path: str) -> Path:
        return self._root / path if path else self._root

    def exists(self, path: str) -> bool:
        return os.path.lexists(self._path(path))

    def info(self, path: str) -> Found | None:
        return next((found for found in self.walk(path, 1) if found.relative == path), None)

    def walk(self, path: str, depth: int | None, after: str = "") -> Iterator[Found]:
        return walk(self._root, path, depth)

    def read(self, path: str) -> bytes:
        return self._path(path).read_bytes()

    def read_range(self, path: str, start: int, length: int) -> bytes:
        with self.open(path) as file:
            file.seek(start)
            return file.read(length)

    def open(self, path: str) -> BinaryIO:
        return self._path(path).open("rb")

    def replace(self, path: str, content: bytes) -> None:
        """Write a temporary file, sync it, and rename it: readers, even after a crash, never see a part."""
        _write_aside(self._path(path), content, Path.replace)

    def create(self, path: str, content: bytes) -> None:
        """Write a temporary file, sync it, and link it: the link fails when the name exists."""
        _write_aside(self._path(path), content, _link)

    def copy(self, path: str, target: str) -> None:
        copy(self._path(path), self._path(target))

    def makedirs(self, path: str) -> None:
        makedirs(self._path(path))

    def delete(self, path: str) -> None:
        delete(self._path(path))


def walk(root: Path, relative: str, depth: int | None) -> Iterator[Found]:
    """Yield the regular files at or below `relative`, in no order; `depth` levels down, None all.

    Links are followed as Hadoop's local file system follows them, but only inside the root
    (RefusedError ``storage.outside-root``), and no folder twice on one way down.
    """
    start = root / relative if relative else root
    try:
        state = start.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(state.st_mode):
        yield from _walk_folder(root, start, relative, depth, frozenset())
    elif stat.S_ISREG(state.st_mode):
        yield _found(relative, state)


def _walk_folder(
    root: Path, folder: Path, relative: str, depth: int | None, links: frozenset[str]
) -> Iterator[Found]:
    below = None if depth is None else depth - 1
    with os.scandir(folder) as entries:
        for entry in entries:
            name = f"{relative}/{entry.name}" if relative else entry.name
            followed = links
            if entry.is_symlink():
                check_target(root, Path(entry.path), name)
                target = os.path.realpath(entry.path)
                if target in links or Path(entry.path).is_relative_to(target):
                    continue
                followed = links | {target}
            # A writer may remove a file after it was listed, which is no error.
            with contextlib.suppress(FileNotFoundError):
                if entry.is_dir():
                    if below != 0:
                        yield from _walk_folder(root, Path(entry.path), name, below, followed)
                elif entry.is_file():
                    yield _found(name, entry.stat())


def _found(relative: str, state: os.stat_result) -> Found:
    return Found(relative, state.st_size, state.st_mtime_ns // 1_000_000)


def _write_aside(path: Path, content: bytes, show: Callable[[Path, Path], object]) -> None:
    """Write a temporary file in the same folder, sync it, show it under its name, sync the folder."""
    makedirs(path.parent)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        show(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _link(aside: Path, path: Path) -> None:
    path.hardlink_to(aside)
    aside.unlink()


def copy(path: Path, target: Path) -> None:
    """Copy a file's content."""
    makedirs(target.parent)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    with os.fdopen(descriptor, "wb") as to, path.open("rb") as content:
        shutil.copyfileobj(content, to, 1 << 20)


def makedirs(folder: Path) -> None:
    """Make a folder and missing parents with mode 0700 (os.makedirs sets only the last one's mode)."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=_FOLDER_MODE)


def delete(path: Path) -> None:
    """Remove a file, a link (never its target) or a folder with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
