"""Files below one root, local or in an object store, under the names that Spark uses for them."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import fsspec

from drawdown.errors import MachineError, RefusedError, SourceError
from drawdown.storage import local_files
from drawdown.storage.containment import check_links, check_relative
from drawdown.values.globs import Glob

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(.*)", re.DOTALL)
# Names of the time of the last change in listings of the fsspec implementations.
_MTIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True)
class FileInfo:
    """One file: `path` as Spark gets it, `relative` to the root, bytes, milliseconds since 1970 UTC."""

    path: str
    relative: str
    size: int
    mtime_ms: int

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return posixpath.basename(self.relative)


class Storage:
    """The files of one storage root.

    Every method takes paths relative to the root and refuses those that leave it (RefusedError
    ``storage.outside-root``). A missing file raises Python's FileNotFoundError, because only the caller
    knows what its absence means; a folder in place of a file, or the other way round, raises RefusedError
    ``storage.wrong-kind``; every other failure of a store is a SourceError ``storage.unreachable``. Written
    files are private: files 0600, new folders 0700; existing files and folders keep their modes.

    Args:
        root: a local folder or a URL (file:, s3:, gs:, abfs:, hdfs:). A URL is kept as given, so that
            Spark gets the same one.

    Raises:
        MachineError: ``storage.backend`` when the library for the scheme is missing or unknown.
    """

    def __init__(self, root: str) -> None:
        url = _URL.fullmatch(root)
        self.is_local = url is None or url[1].lower() in ("file", "local")
        # abspath, not Path.absolute: Hadoop also removes ".." from paths, and the names must be equal.
        self.root = root.rstrip("/") or "/" if url else os.path.abspath(root)  # noqa: PTH100
        if self.is_local:
            inner = "/" + url[2].lstrip("/") if url else self.root
            self._local = Path(inner)
            self._base = str(self._local)
            self._fs: Any = None
        else:
            self._fs, self._base = _open_backend(self.root)

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def path(self, relative: str) -> str:
        """Return the absolute path or URL for Spark; patterns are allowed."""
        checked = self._checked(relative)
        return f"{self.root.rstrip('/')}/{checked}" if checked else self.root

    def relative(self, path: str) -> str:
        """Return a path from `path` relative to the root (a relative path is only checked)."""
        if path == self.root:
            return ""
        return self._checked(path.removeprefix(self.root.rstrip("/") + "/"))

    def exists(self, relative: str) -> bool:
        """Whether a file or folder exists."""
        inner = self._inner(relative)
        with _store_errors(self.root, relative):
            return os.path.lexists(inner) if self.is_local else bool(self._fs.exists(inner))

    def list_files(self, pattern: str) -> list[FileInfo]:
        """Return the files that match a pattern, by path; folders are left out, hidden names are not.

        Raises:
            RefusedError: ``storage.outside-root`` when a symbolic link among them leads out.
        """
        self._checked(pattern)
        found: dict[str, FileInfo] = {}
        for glob in Glob.parse(pattern):
            for info in self.walk(glob.prefix, depth=max(len(glob.names), 1)):
                below = info.relative[len(glob.prefix) :].strip("/")
                if glob.matches(tuple(below.split("/")) if below else ()):
                    found[info.relative] = info
        return [found[name] for name in sorted(found)]

    def walk(self, relative: str, depth: int | None = None) -> Iterator[FileInfo]:
        """Yield every file at or below a path, in no order; nothing when it does not exist.

        Args:
            relative: a folder, or a file, which is then the only one.
            depth: how many levels down; 1 is the folder itself, None all.
        """
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            if self.is_local:
                for found in local_files.walk(self._local, checked, depth):
                    yield FileInfo(self._spark_path(found.relative), *found)
                return
            for inner, listed in self._fs.find(self._inner(checked), maxdepth=depth, detail=True).items():
                # For a path that is a file, fsspec's own `find` returns only the name.
                info = listed or self._fs.info(inner)
                below = inner[len(self._base) :].lstrip("/")
                yield FileInfo(self._spark_path(below), below, int(info["size"]), self._mtime_ms(info))

    def read_bytes(self, relative: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError when it does not exist."""
        inner = self._inner(relative)
        with _store_errors(self.root, relative):
            return Path(inner).read_bytes() if self.is_local else bytes(self._fs.cat_file(inner))

    def open(self, relative: str) -> BinaryIO:
        """Open a file for reading; raises what `read_bytes` raises."""
        inner = self._inner(relative)
        with _store_errors(self.root, relative):
            return cast("BinaryIO", Path(inner).open("rb") if self.is_local else self._fs.open(inner, "rb"))

    def info(self, relative: str) -> FileInfo | None:
        """Return one file as it is now; None when it does not exist."""
        return next((info for info in self.walk(relative, depth=1) if info.relative == relative), None)

    def write_atomic(self, relative: str, content: bytes) -> None:
        """Replace a file so that readers, even after a crash, see the old content or the new, never a part.

        Local and hdfs: a temporary file is written, then renamed (local: both synced). Object stores: one
        put, which becomes visible as a whole.
        """
        inner = self._inner(relative)
        with _store_errors(self.root, relative):
            if self.is_local:
                local_files.write_atomic(Path(inner), content)
            elif "hdfs" in self._protocols():
                aside = posixpath.join(posixpath.dirname(inner), f".{posixpath.basename(inner)}.aside.tmp")
                self._fs.makedirs(posixpath.dirname(inner), exist_ok=True)
                self._fs.pipe_file(aside, content)
                self._fs.mv(aside, inner)
            else:
                self._fs.pipe_file(inner, content)

    def copy(self, relative: str, target: str) -> None:
        """Copy one file to a path that nothing reads yet; not atomic, not synced.

        Raises FileNotFoundError when it does not exist.
        """
        inner, aside = self._inner(relative), self._inner(target)
        with _store_errors(self.root, target):
            if self.is_local:
                local_files.copy(Path(inner), Path(aside))
            else:
                self._fs.makedirs(posixpath.dirname(aside), exist_ok=True)
                self._fs.cp_file(inner, aside)

    def makedirs(self, relative: str) -> None:
        """Make a folder and its missing parents, private to the user; existing ones stay as they are."""
        inner = self._inner(relative)
        with _store_errors(self.root, relative):
            if self.is_local:
                local_files.makedirs(Path(inner))
            else:
                self._fs.makedirs(inner, exist_ok=True)

    def delete(self, relative: str) -> None:
        """Delete a file, or a folder with its content; does nothing when it does not exist.

        Raises:
            RefusedError: ``storage.delete-root``: the root itself is never deleted.
        """
        checked = self._checked(relative)
        if not checked:
            raise RefusedError(
                "storage.delete-root",
                "the storage root itself is never deleted",
                where=self.root,
                do="name what is to be deleted below it",
            )
        inner = self._inner(checked)
        with _store_errors(self.root, relative):
            if self.is_local:
                local_files.delete(Path(inner))
            elif self._fs.exists(inner):
                self._fs.rm(inner, recursive=True)

    def _checked(self, relative: str) -> str:
        checked = check_relative(relative, self.root)
        if self.is_local:
            check_links(self._local, checked)
        return checked

    def _inner(self, relative: str) -> str:
        """Return the path for the underlying file system: without scheme."""
        checked = self._checked(relative)
        return f"{self._base.rstrip('/')}/{checked}" if checked else self._base

    def _spark_path(self, relative: str) -> str:
        return f"{self.root.rstrip('/')}/{relative}"

    def _protocols(self) -> tuple[str, ...]:
        protocol = self._fs.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def _mtime_ms(self, info: dict[str, Any]) -> int:
        value = next((info[key] for key in _MTIME_KEYS if info.get(key)), None)
        if value is None:
            value = self._fs.modified(info["name"])
        seconds = value.timestamp() if isinstance(value, datetime) else float(value)
        # Round to microseconds first: in binary, 0.123 s is a little less than 123 ms.
        return round(seconds * 1_000_000) // 1000


def _open_backend(root: str) -> tuple[Any, str]:
    try:
        fs, base = fsspec.core.url_to_fs(root)
    except (ImportError, ValueError) as error:
        raise MachineError(
            "storage.backend",
            f"no way to reach this kind of storage: {error}",
            where=root,
            do="install the fsspec library for the scheme (s3fs, gcsfs, adlfs), or give a local folder",
        ) from error
    return fs, str(base)


class _store_errors:
    """Turns a store's failures, except a missing file, into our errors."""

    def __init__(self, root: str, relative: str) -> None:
        self._where = f"{root.rstrip('/')}/{relative}"

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, IsADirectoryError | NotADirectoryError):
            found, wanted = ("folder", "file") if isinstance(error, IsADirectoryError) else ("file", "folder")
            raise RefusedError(
                "storage.wrong-kind",
                f"there is a {found} where a {wanted} should be",
                where=self._where,
                do=f"move the {found} away, and bring the {wanted} back from a copy",
            ) from error
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise SourceError(
                "storage.unreachable",
                f"the storage answered: {error.strerror or error}",
                where=self._where,
                do="check that the storage is reachable and that this user may read and write there",
            ) from error
