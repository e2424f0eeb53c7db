"""Files of any other store that fsspec has a library for (hdfs, abfs); untried (docs/object-storage.md).

No listing comes from a cache: Spark writes behind these libraries, in another process.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, cast

import fsspec

from drawdown.errors import MachineError
from drawdown.storage.files import Found

# Names of the time of the last change in listings of the fsspec implementations.
_MTIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "created")


class FsspecFiles:
    """The files below a URL.

    Raises:
        MachineError: ``storage.backend`` when the library for the scheme is missing or unknown.
    """

    def __init__(self, root: str) -> None:
        try:
            self._fs, base = fsspec.core.url_to_fs(root, use_listings_cache=False)
        # OSError: hdfs, where pyarrow finds no library of Hadoop's.
        except (ImportError, ValueError, OSError) as error:
            raise MachineError(
                "storage.backend",
                f"no way to reach this kind of storage: {str(error).splitlines()[0]}",
                where=root,
                do="install the fsspec library for the scheme (adlfs, pyarrow), or give s3://, gs:// or a"
                " local folder",
            ) from error
        self._base = str(base)

    def _inner(self, path: str) -> str:
        return f"{self._base.rstrip('/')}/{path}" if path else self._base

    def exists(self, path: str) -> bool:
        return bool(self._fs.exists(self._inner(path)))

    def info(self, path: str) -> Found | None:
        return next((found for found in self.walk(path, 1) if found.relative == path), None)

    def walk(self, path: str, depth: int | None, after: str = "") -> Iterator[Found]:
        for inner, listed in self._fs.find(self._inner(path), maxdepth=depth, detail=True).items():
            # For a path that is a file, fsspec's own `find` returns only the name.
            info = listed or self._fs.info(inner)
            yield Found(inner[len(self._base) :].lstrip("/"), int(info["size"]), self._mtime_ms(info))

    def read(self, path: str) -> bytes:
        return bytes(self._fs.cat_file(self._inner(path)))

    def read_range(self, path: str, start: int, length: int) -> bytes:
        return bytes(self._fs.cat_file(self._inner(path), start=start, end=start + length))

    def open(self, path: str) -> BinaryIO:
        return cast("BinaryIO", self._fs.open(self._inner(path), "rb"))

    def replace(self, path: str, content: bytes) -> None:
        """Write a temporary file and rename it (hdfs), or put it as a whole."""
        inner = self._inner(path)
        if "hdfs" not in self._protocols():
            self._fs.pipe_file(inner, content)
            return
        aside = posixpath.join(posixpath.dirname(inner), f".{posixpath.basename(inner)}.aside.tmp")
        self._fs.makedirs(posixpath.dirname(inner), exist_ok=True)
        self._fs.pipe_file(aside, content)
        self._fs.mv(aside, inner)

    def create(self, path: str, content: bytes) -> None:
        self._fs.pipe_file(self._inner(path), content, mode="create")

    def copy(self, path: str, target: str) -> None:
        self._fs.makedirs(posixpath.dirname(self._inner(target)), exist_ok=True)
        self._fs.cp_file(self._inner(path), self._inner(target))

    def makedirs(self, path: str) -> None:
        self._fs.makedirs(self._inner(path), exist_ok=True)

    def delete(self, path: str) -> None:
        if self._fs.exists(self._inner(path)):
            self._fs.rm(self._inner(path), recursive=True)

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
