"""Files below one root, local or in an object store, under the names that Spark uses for them."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from drawdown.errors import RefusedError, SourceError
from drawdown.spec import Project, Source
from drawdown.spec.connections.object_storage import ObjectStorage, for_spark, is_object_storage
from drawdown.storage.access import object_options, remember
from drawdown.storage.containment import check_links, check_name, check_pattern, check_target
from drawdown.storage.files import Files
from drawdown.storage.fsspec_files import FsspecFiles
from drawdown.storage.local_files import LocalFiles
from drawdown.storage.object_files import ObjectFiles
from drawdown.values.globs import Glob

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(.*)", re.DOTALL)


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
    ``storage.wrong-kind``; every other failure of a store is a SourceError: ``storage.no-bucket``,
    ``storage.denied``, ``storage.unreachable``. Written files are private: files 0600, new folders 0700;
    existing files and folders keep their modes. No listing comes from a cache.

    Args:
        root: a local folder or a URL (file:, s3:, gs:, abfs:, hdfs:). ``s3:`` is ``s3a:`` in every path that
            Spark gets; any other URL is kept as given.
        access: how to reach a bucket; None: as the machine's environment or role says.

    Raises:
        MachineError: ``storage.backend`` when the library for the scheme is missing or unknown.
    """

    def __init__(self, root: str, access: ObjectStorage | None = None) -> None:
        url = _URL.fullmatch(root)
        self.is_local = url is None or url[1].lower() in ("file", "local")
        # abspath, not Path.absolute: Hadoop also removes ".." from paths, and the names must be equal.
        self.root = for_spark(root).rstrip("/") or "/" if url else os.path.abspath(root)  # noqa: PTH100
        self._files: Files
        if self.is_local:
            self._local = Path("/" + url[2].lstrip("/") if url else self.root)
            self._files = LocalFiles(self._local)
        elif is_object_storage(root):
            remember(self.root, access)
            self._files = ObjectFiles(self.root, object_options(self.root))
        else:
            self._files = FsspecFiles(self.root)

    @classmethod
    def of(cls, project: Project) -> Storage:
        """Return the storage of the project's storage root."""
        return cls(project.storage_root, project.access_to(project.storage_root))

    @classmethod
    def of_source(cls, project: Project, source: Source) -> Storage:
        """Return the storage that a source's path is in: the one it names, or that of the storage root."""
        if source.storage is None:
            return cls.of(project)
        named = project.storages[source.storage]
        return cls(named.address, named)

    @property
    def is_s3(self) -> bool:
        """Whether the files are objects of S3."""
        return self.root.startswith("s3a://")

    def __repr__(self) -> str:
        return f"Storage({self.root!r})"

    def path(self, relative: str) -> str:
        """Return the absolute path or URL for Spark; patterns are allowed."""
        checked = self._checked_pattern(relative)
        return f"{self.root.rstrip('/')}/{checked}" if checked else self.root

    def path_of_file(self, relative: str) -> str:
        """Return the absolute path or URL of one file, in which nothing is a wildcard."""
        return f"{self.root.rstrip('/')}/{self._checked(relative)}"

    def relative(self, path: str) -> str:
        """Return a path from `path` relative to the root (a relative path is only checked)."""
        if path == self.root:
            return ""
        return self._checked(path.removeprefix(self.root.rstrip("/") + "/"))

    def exists(self, relative: str) -> bool:
        """Whether a file or folder exists."""
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            return self._files.exists(checked)

    def list_files(self, pattern: str) -> list[FileInfo]:
        """Return the files that match a pattern, by path; folders are left out, hidden names are not.

        Raises:
            RefusedError: ``storage.outside-root`` when a symbolic link among them leads out.
        """
        self._checked_pattern(pattern)
        found: dict[str, FileInfo] = {}
        for glob in Glob.parse(pattern):
            for info in self.walk(glob.prefix, depth=max(len(glob.names), 1)):
                below = info.relative[len(glob.prefix) :].strip("/")
                if glob.matches(tuple(below.split("/")) if below else ()):
                    found[info.relative] = info
        return [found[name] for name in sorted(found)]

    def walk(self, relative: str, depth: int | None = None, after: str = "") -> Iterator[FileInfo]:
        """Yield every file at or below a path, in no order; nothing when it does not exist.

        Args:
            relative: a folder, or a file, which is then the only one.
            depth: how many levels down; 1 is the folder itself, None all.
            after: a path below the root: an object store that lists all levels leaves out what does not come
                after it by name, and makes no requests for it.
        """
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            for found in self._files.walk(checked, depth, after):
                yield FileInfo(f"{self.root.rstrip('/')}/{found.relative}", *found)

    def read_bytes(self, relative: str) -> bytes:
        """Return the content of a file. Raises FileNotFoundError when it does not exist."""
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            return self._files.read(checked)

    def read_range(self, relative: str, start: int, length: int) -> bytes:
        """Return bytes of a file from a position on: all of them exist; raises what `read_bytes` raises."""
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            return self._files.read_range(checked, start, length)

    def open(self, relative: str) -> BinaryIO:
        """Open a file for reading; raises what `read_bytes` raises."""
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            return self._files.open(checked)

    def info(self, relative: str) -> FileInfo | None:
        """Return one file as it is now; None when it does not exist."""
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            found = self._files.info(checked)
        return None if found is None else FileInfo(f"{self.root.rstrip('/')}/{found.relative}", *found)

    def write_atomic(self, relative: str, content: bytes) -> None:
        """Replace a file so that readers, even after a crash, see the old content or the new, never a part.

        Local and hdfs: a temporary file is written, then renamed (local: both synced). Object stores: one
        put, which becomes visible as a whole.
        """
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            self._files.replace(checked, content)

    def create(self, relative: str, content: bytes) -> bool:
        """Write a file as `write_atomic` does; return False, and change nothing, when there is one.

        Of many who try at the same time, one succeeds. Local: a link. Object stores: a conditional put.
        """
        checked = self._checked(relative)
        try:
            with _store_errors(self.root, relative):
                self._files.create(checked, content)
        except FileExistsError:
            return False
        return True

    def copy(self, relative: str, target: str) -> None:
        """Copy one file to a path that nothing reads yet; not atomic, not synced.

        Raises FileNotFoundError when it does not exist.
        """
        checked, aside = self._checked(relative), self._checked(target)
        with _store_errors(self.root, target):
            self._files.copy(checked, aside)

    def makedirs(self, relative: str) -> None:
        """Make a folder and its missing parents, private to the user; existing ones stay as they are."""
        checked = self._checked(relative)
        with _store_errors(self.root, relative):
            self._files.makedirs(checked)

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
        with _store_errors(self.root, relative):
            self._files.delete(checked)

    def _checked(self, relative: str) -> str:
        checked = check_name(relative, self.root)
        if self.is_local:
            check_target(self._local, self._local / checked, checked)
        return checked

    def _checked_pattern(self, relative: str) -> str:
        checked = check_pattern(relative, self.root)
        if self.is_local:
            check_links(self._local, checked)
        return checked


class _store_errors:
    """Turns a store's failures, except a missing or an existing file, into our errors."""

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
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError | FileExistsError):
            raise SourceError(
                "storage.unreachable",
                f"the storage answered: {error.strerror or error}",
                where=self._where,
                do="check that the storage is reachable and that this user may read and write there",
            ) from error
