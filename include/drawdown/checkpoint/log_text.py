"""The text form that all of Spark's metadata logs share: a version line, then lines of JSON.

Source: org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog and
MetadataVersionUtil (Spark 4.2).
"""

from __future__ import annotations

import re
from typing import Any

from drawdown.errors import RefusedError
from drawdown.layout import owner_of
from drawdown.storage import Storage
from drawdown.values.json_text import read_json

_VERSION = re.compile(r"v([1-9][0-9]*)")
_BATCH_FILE = re.compile(r"[0-9]+")


def batch_ids(storage: Storage, folder: str) -> list[int]:
    """Return the batches in a log folder, ascending.

    Checksums (``.7.crc``) and files that a crash left incomplete (``.7.<uuid>.tmp``) are not
    batches: HDFSMetadataLog only accepts names that are whole numbers.
    """
    return sorted(
        int(info.name) for info in storage.walk(folder, depth=1) if _BATCH_FILE.fullmatch(info.name)
    )


def read_lines(storage: Storage, path: str, newest: int) -> tuple[int, list[str]]:
    """Return the version in the first line, and the lines after it.

    Args:
        newest: the highest version of this log that Spark 4.2 writes.

    Raises:
        RefusedError: ``checkpoint.torn`` for an empty file or one that is not UTF-8,
            ``checkpoint.foreign`` when the first line is not a version, ``checkpoint.future`` when it
            is a newer one.
        FileNotFoundError: the file does not exist.
    """
    return behind_version(storage, path, lines_of(storage, path, storage.read_bytes(path)), newest)


def lines_of(storage: Storage, path: str, content: bytes) -> list[str]:
    """Return the lines of a file's content (RefusedError ``checkpoint.torn`` when it is not UTF-8)."""
    try:
        return content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise torn(storage, path, "it is not UTF-8 text") from error


def behind_version(storage: Storage, path: str, lines: list[str], newest: int) -> tuple[int, list[str]]:
    """Return the version in the first of a file's lines, and the others. Raises as `read_lines`."""
    if lines == [""]:
        raise torn(storage, path, "it is empty")
    version = _VERSION.fullmatch(lines[0].strip())
    if version is None:
        raise RefusedError(
            "checkpoint.foreign",
            f"the first line of a checkpoint file is a version like 'v1', here it is {lines[0][:40]!r}",
            where=storage.path(path),
            do="let no other program write into this folder; " + verify_first(path),
        )
    if int(version[1]) > newest:
        raise RefusedError(
            "checkpoint.future",
            f"the file has version {version[1]}; Spark 4.2 writes and reads at most version {newest}",
            where=storage.path(path),
            do="run this pipeline with the newer Spark that wrote its checkpoint; or " + verify_first(path),
        )
    return int(version[1]), lines[1:]


def parse_object(storage: Storage, path: str, text: str) -> dict[str, Any]:
    """Parse a line that must be a JSON object (RefusedError ``checkpoint.torn`` otherwise)."""
    value = parse_json(storage, path, text)
    if not isinstance(value, dict):
        raise torn(storage, path, f"the line {text[:40]!r} is not a JSON object")
    return value


def parse_json(storage: Storage, path: str, text: str) -> Any:
    """Parse a line that must be JSON (RefusedError ``checkpoint.torn`` otherwise)."""
    try:
        return read_json(text)
    except ValueError as error:
        raise torn(storage, path, f"the line {text[:40]!r} is not JSON") from error


def verify_first(path: str) -> str:
    """Return the command that shows how to fix a file, by its path relative to the storage root."""
    name = owner_of(path) or "NAME"
    return (
        f"`drawdown checkpoint verify {name}` lists damaged or missing files and the command that fixes them"
    )


def torn(storage: Storage, path: str, cause: str) -> RefusedError:
    """Return the error for a file that Spark did not write completely."""
    return RefusedError(
        "checkpoint.torn",
        f"a file of the checkpoint cannot be read: {cause}",
        where=storage.path(path),
        do=verify_first(path),
    )
