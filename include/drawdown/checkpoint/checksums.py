"""Hadoop's checksum beside a file, ``.NAME.crc``: its local file system checks it at every read.

Source: org.apache.hadoop.fs.ChecksumFileSystem (Hadoop 3.4): ``crc\\0``, the bytes per checksum as a
big-endian int, then one big-endian CRC-32 for each such chunk. A file without one is read unchecked, so
whoever changes a file by other means than Hadoop's must remove its checksum.
"""

from __future__ import annotations

import zlib

from drawdown.storage import Storage

_MAGIC = b"crc\0"
_HEADER = 8


def checksum_path(path: str) -> str:
    """Where the checksum of a file is, whether or not there is one."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def checksum_differs(storage: Storage, path: str, content: bytes) -> bool:
    """Whether Hadoop would refuse to read this content of a file; False when it has no checksum."""
    try:
        checksum = storage.read_bytes(checksum_path(path))
    except FileNotFoundError:
        return False
    chunk = int.from_bytes(checksum[4:_HEADER], "big")
    if not checksum.startswith(_MAGIC) or len(checksum) < _HEADER or chunk == 0:
        return True
    view = memoryview(content)
    sums = b"".join(
        zlib.crc32(view[start : start + chunk]).to_bytes(4, "big") for start in range(0, len(view), chunk)
    )
    return sums != checksum[_HEADER:]


def delete_with_checksum(storage: Storage, path: str) -> None:
    """Delete a file; its checksum goes first, so that none is ever left over."""
    storage.delete(checksum_path(path))
    storage.delete(path)


def replace_with_checksum(storage: Storage, path: str, content: bytes) -> None:
    """Replace a file; the checksum of its old content is removed."""
    storage.delete(checksum_path(path))
    storage.write_atomic(path, content)
