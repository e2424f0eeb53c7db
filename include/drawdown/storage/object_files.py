"""Objects of a bucket, in S3 or Google Cloud Storage, as the files of a storage.

By `obstore`, the library that delta-rs is built on too: one set of options reaches both, nothing is cached
between two calls, and a put can ask that the key does not exist yet. A folder is a common prefix: it needs no
making, and is gone with its last object. Hadoop and consoles write zero-byte objects whose key ends in a
slash to stand for a folder; they are no files here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from drawdown.errors import MachineError
from drawdown.storage.files import Found
from drawdown.storage.object_errors import of_request
from drawdown.storage.requests import count

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_ADDRESS = re.compile(r"(?:s3|s3a|gs)://([^/]+)/?(.*)", re.DOTALL)
# A server that does not answer is given up after a minute; delta-rs waits for three by default.
# The library's first pauses are so short that a bucket which throttles is given up after a second.
_RETRIES = {
    "max_retries": 10,
    "retry_timeout": timedelta(seconds=60),
    "backoff": {"init_backoff": timedelta(milliseconds=250), "max_backoff": timedelta(seconds=4), "base": 2},
}
_READ_AT_ONCE = 1 << 20
_PAGE = 1000
"""Keys of one answer to a listing, and of one request to delete."""


class ObjectFiles:
    """The objects below ``scheme://bucket/prefix``.

    Args:
        options: of the object store, as `object_options` of storage/access.py returns them.
    """

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        found = _ADDRESS.fullmatch(address)
        assert found is not None
        self._bucket, self._prefix = found[1], found[2].strip("/")
        self._scheme = "gs" if address.startswith("gs:") else "s3"
        self._options = options

    @property
    def _store(self) -> ObjectStore:
        return _opened(self._scheme, self._bucket, tuple(sorted(self._options.items())))

    def _key(self, path: str) -> str:
        return "/".join(filter(None, (self._prefix, path)))

    def exists(self, path: str) -> bool:
        """Whether an object has this key, or one below it."""
        if self._size(path) is not None:
            return True
        return next(self.walk(path, None), None) is not None

    def info(self, path: str) -> Found | None:
        return next(self._alone(path), None)

    def walk(self, path: str, depth: int | None, after: str = "") -> Iterator[Found]:
        """Yield the objects at or below a path by name, ``depth`` levels down; those behind `after` alone."""
        if depth == 1:
            yield from self._walk_one(path)
            return
        below = len(path.split("/")) if path else 0
        found = False
        for each in self._entries(path, after):
            found = True
            if depth is None or len(each.relative.split("/")) - below <= depth:
                yield each
        if not found and path and not after:
            yield from self._alone(path)

    def _walk_one(self, path: str) -> Iterator[Found]:
        import obstore

        listed = _asked(
            lambda: obstore.list_with_delimiter(self._store, self._key(path) or None),
            self._where(path),
            "list",
        )
        count("list", max(0, len(listed["objects"]) + len(listed["common_prefixes"]) - 1) // _PAGE)
        objects = [self._found(each) for each in listed["objects"]]
        folders = {self._relative(each) for each in listed["common_prefixes"]}
        yield from (each for each in objects if each.relative not in {path, *folders} and self._is_file(each))
        if not objects and not folders and path:
            yield from self._alone(path)

    def _entries(self, path: str, after: str) -> Iterator[Found]:
        """Yield what a listing has, without what stands for a folder."""
        import obstore

        offset = self._key(after) if after else None
        stream = obstore.list(self._store, self._key(path) or None, offset=offset, chunk_size=_PAGE)
        before: Found | None = None
        count("list")  # the answer to the last page says that it is the last
        while (chunk := _asked(lambda: next(stream, None), self._where(path))) is not None:
            count("list", int(before is not None))
            for each in map(self._found, chunk):
                # By name, what stands for a folder comes directly before what is in it.
                stands_for_it = before and not before.size and each.relative.startswith(f"{before.relative}/")
                if before is not None and not stands_for_it:
                    yield from self._unless_folder(path, before)
                before = each
        if before is not None:
            yield from self._unless_folder(path, before)

    def _unless_folder(self, path: str, each: Found) -> Iterator[Found]:
        if each.relative != path and self._is_file(each):
            yield each

    def _is_file(self, each: Found) -> bool:
        """Whether the entry is an object: the library leaves a slash at the end of a key out."""
        return each.size > 0 or self._size(each.relative) is not None

    def _alone(self, path: str) -> Iterator[Found]:
        import obstore

        try:
            yield self._found(
                _asked(lambda: obstore.head(self._store, self._key(path)), self._where(path), "head")
            )
        except FileNotFoundError:
            return

    def _size(self, path: str) -> int | None:
        return next((each.size for each in self._alone(path)), None)

    def read(self, path: str) -> bytes:
        import obstore

        return bytes(
            _asked(lambda: obstore.get(self._store, self._key(path)).bytes(), self._where(path), "get")
        )

    def read_range(self, path: str, start: int, length: int) -> bytes:
        import obstore

        return bytes(
            _asked(
                lambda: obstore.get_range(self._store, self._key(path), start=start, length=length),
                self._where(path),
                "get",
            )
        )

    def open(self, path: str) -> BinaryIO:
        import obstore

        reader = _asked(
            lambda: obstore.open_reader(self._store, self._key(path), buffer_size=_READ_AT_ONCE),
            self._where(path),
            "head",
        )
        return cast("BinaryIO", io.BufferedReader(_Reading(reader, self._where(path)), _READ_AT_ONCE))

    def replace(self, path: str, content: bytes) -> None:
        """Write an object, which becomes visible as a whole."""
        self._put(path, content, "overwrite")

    def create(self, path: str, content: bytes) -> None:
        """Write an object whose key does not exist yet; FileExistsError otherwise.

        By If-None-Match (S3) or a generation of 0 (Google): of many who try, one succeeds.
        """
        self._put(path, content, "create")

    def _put(self, path: str, content: bytes, mode: str) -> None:
        import obstore

        _asked(
            lambda: obstore.put(self._store, self._key(path), content, mode=cast("Any", mode)),
            self._where(path),
            "put",
        )

    def copy(self, path: str, target: str) -> None:
        import obstore

        _asked(
            lambda: obstore.copy(self._store, self._key(path), self._key(target)), self._where(path), "put"
        )

    def makedirs(self, path: str) -> None:
        """Do nothing: a prefix needs no making."""

    def delete(self, path: str) -> None:
        import obstore

        keys = [self._key(each.relative) for each in self.walk(path, None)]
        if keys:
            _asked(lambda: obstore.delete(self._store, keys), self._where(path), "delete")
            count("delete", (len(keys) - 1) // _PAGE)

    def _found(self, meta: Any) -> Found:
        # Whole seconds: some servers list milliseconds, and leave them out when asked for one object.
        milliseconds = int(meta["last_modified"].timestamp()) * 1000
        return Found(self._relative(meta["path"]), int(meta["size"]), milliseconds)

    def _relative(self, key: str) -> str:
        return key.removeprefix(self._prefix).lstrip("/") if self._prefix else key

    def _where(self, path: str) -> str:
        return f"{self._scheme}://{self._bucket}/{self._key(path)}"


_stores: dict[tuple[Any, ...], ObjectStore] = {}


def _opened(scheme: str, bucket: str, options: tuple[tuple[str, str], ...]) -> ObjectStore:
    """Return the one client of this process for a bucket: it keeps connections, and no listing."""
    key = scheme, bucket, options
    if key not in _stores:
        try:
            from obstore.store import GCSStore, S3Store
        except ImportError as error:
            raise MachineError(
                "storage.backend",
                f"no way to reach this kind of storage: {error}",
                where=f"{scheme}://{bucket}",
                do="install the library for object storage: pip install 'drawdown[s3]'",
            ) from None
        kind: Any = GCSStore if scheme == "gs" else S3Store
        config = {name: value for name, value in options if not name.startswith("allow_")}
        client: Any = {name: True for name, value in options if name.startswith("allow_") and value == "true"}
        _stores[key] = kind(bucket, config=config, client_options=client, retry_config=cast("Any", _RETRIES))
    return _stores[key]


def _asked(request: Any, where: str, kind: str | None = None) -> Any:
    """Make a request; FileNotFoundError for a missing object, FileExistsError for one that should not exist.

    Args:
        kind: counted as one of these; None when the caller counts.

    Raises:
        SourceError: ``storage.no-bucket``, ``storage.denied``, ``storage.unreachable``.
    """
    from obstore.exceptions import AlreadyExistsError, BaseError

    if kind is not None:
        count(kind)
    try:
        return request()
    except AlreadyExistsError:
        raise FileExistsError(where) from None
    except (BaseError, OSError) as error:
        failed = of_request(str(error), where)
        if isinstance(error, FileNotFoundError) and failed.id == "storage.unreachable":
            raise
        raise failed from None


class _Reading(io.RawIOBase):
    """An object as a raw stream of Python."""

    def __init__(self, reader: Any, where: str) -> None:
        self._reader, self._where = reader, where

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = _asked(lambda: self._reader.read(len(buffer)), self._where)
        count("get", int(len(content) > 0))  # at its end, nothing is asked for
        buffer[: len(content)] = bytes(content)
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())
