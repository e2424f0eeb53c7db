"""Hadoop's checksum beside a file, ``.NAME.crc``: its local file system checks it at every read.

Source: org.apache.hadoop.fs.ChecksumFileSystem (Hadoop 3.4): ``crc\\0``, the bytes per checksum as a
big-endian int, then one big-endian CRC-32 for each such chunk. A file without a checksum is read unchecked,
so a change of a file without Hadoop must remove its checksum.
"""

from __future__ import annotations

import zlib

from drawdown.errors import RefusedError
from drawdown.storage import Storage

_MAGIC = b"crc\0"
_HEADER = 8


def checksum_path(path: str) -> str:
    """Return the path of a file's checksum, whether or not it exists."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def checksum_differs(storage: Storage, path: str, content: bytes) -> bool:
    """Whether Hadoop would refuse to read a file with this content; False when it has no checksum."""
    try:
        checksum = storage.read_bytes(checksum_path(path))
    except FileNotFoundError:
        return False
    except RefusedError:  # a folder of that name
        return True
    chunk = int.from_bytes(checksum[4:_HEADER], "big")
    if not checksum.startswith(_MAGIC) or len(checksum) < _HEADER or chunk == 0:
        return True
    view = memoryview(content)
    sums = b"".join(
        zlib.crc32(view[start : start + chunk]).to_bytes(4, "big") for start in range(0, len(view), chunk)
    )
    return sums != checksum[_HEADER:]


def delete_with_checksum(storage: Storage, path: str) -> None:
    """Delete a file; its checksum is deleted first, so that none is left behind."""
    storage.delete(checksum_path(path))
    storage.delete(path)


def replace_with_checksum(storage: Storage, path: str, content: bytes) -> None:
    """Replace a file and remove the checksum of its old content."""
    storage.delete(checksum_path(path))
    storage.write_atomic(path, content)
