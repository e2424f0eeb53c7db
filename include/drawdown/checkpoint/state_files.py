"""The files of ``state/``: which stores there are, and which files each needs for a version.

Source (Spark 4.2): HDFSBackedStateStoreProvider (``N.delta``, ``N.snapshot``), RocksDBFileManager (``N.zip``,
``N.changelog``, ``SSTs/``), StateStoreId (``state/OPERATOR/PARTITION[/STORE]``), OperatorStateMetadata. With
state store checkpoint format 2 the version is followed by ``_<unique id>``. Batch n starts from version n.
"""

from __future__ import annotations

import io
import json
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drawdown.checkpoint.log_text import parse_object, read_lines
from drawdown.storage import FileInfo, Storage

_FILE = re.compile(r"(\d+)/(\d+)(?:/([^/]+))?/(\d+)(?:_([^/.]+))?\.(zip|changelog|delta|snapshot)")
_IMMUTABLE = re.compile(r"(\d+)/(\d+)(?:/([^/]+))?/(?:SSTs|logs)/([^/.][^/]*)")
_WHOLE = ("zip", "snapshot")
_DEFAULT = "default"
_LZ4_MAGIC = b"LZ4Block"
_LZ4_HEADER = 21


@dataclass(frozen=True, order=True)
class StoreId:
    """One store of one partition of a stateful operator."""

    operator: int
    partition: int
    store: str = _DEFAULT

    def __str__(self) -> str:
        named = "" if self.store == _DEFAULT else f", store {self.store}"
        return f"operator {self.operator}, partition {self.partition}{named}"

    @property
    def folder(self) -> str:
        """Return the store's folder, relative to ``state/``."""
        folder = f"{self.operator}/{self.partition}"
        return folder if self.store == _DEFAULT else f"{folder}/{self.store}"


@dataclass
class StoreFiles:
    """The files of one store: complete states and changes by version, and RocksDB's immutable files."""

    id: StoreId
    whole: dict[int, list[FileInfo]] = field(default_factory=dict)
    changes: dict[int, list[FileInfo]] = field(default_factory=dict)
    immutable: dict[str, FileInfo] = field(default_factory=dict)

    def needed(self, version: int, without: frozenset[str] = frozenset()) -> tuple[list[FileInfo], list[int]]:
        """Return the files that loading a version reads, and the versions whose file is missing.

        Args:
            without: paths, relative to the storage root, to treat as missing.
        """
        bases = [v for v, files in self.whole.items() if v <= version and _left(files, without)]
        base = max(bases, default=0)
        found = _left(self.whole.get(base, []), without)
        missing = []
        for each in range(base + 1, version + 1):
            changes = _left(self.changes.get(each, []), without)
            found += changes
            if not changes:
                missing.append(each)
        return found, missing

    def files(self) -> Iterator[tuple[int, FileInfo]]:
        """Yield every versioned file with its version."""
        for kind in (self.whole, self.changes):
            for version, infos in kind.items():
                for info in infos:
                    yield version, info


@dataclass(frozen=True)
class StateFiles:
    """The state of a checkpoint, from one listing.

    Attributes:
        stores: the expected stores and the existing ones.
        metadata: files about operators and schemas.
        checksums: paths of the checksums of `metadata`, relative to the storage root.
    """

    stores: dict[StoreId, StoreFiles]
    metadata: list[FileInfo]
    checksums: frozenset[str]

    @classmethod
    def read(cls, storage: Storage, checkpoint: str, *, keyed: bool = False) -> StateFiles:
        """List ``state/`` of a checkpoint (path relative to the storage root).

        Args:
            keyed: every operator keeps its state by keys, so that each of its partitions has some; False
                when it is unknown: an operator with state only in partition 0 is treated as without keys.

        Raises:
            RefusedError: an operator's metadata is torn.
        """
        folder = f"{checkpoint}/state"
        stores: dict[StoreId, StoreFiles] = {}
        metadata, checksums = [], set()
        for info in storage.walk(folder):
            below = info.relative[len(folder) + 1 :]
            if found := _FILE.fullmatch(below):
                store = _store(stores, found)
                kind = store.whole if found[6] in _WHOLE else store.changes
                kind.setdefault(int(found[4]), []).append(info)
            elif found := _IMMUTABLE.fullmatch(below):
                _store(stores, found).immutable[found[4]] = info
            elif "_metadata/" in below and not info.name.startswith("."):
                metadata.append(info)
            elif "_metadata/" in below and info.name.endswith(".crc"):
                checksums.add(info.relative)
        found_in = {(each.operator, each.partition) for each in stores}
        for info in metadata:
            for each in _expected(storage, info, folder):
                # Without keys all state is in partition 0 (the distribution AllTuples), although the
                # metadata names as many partitions as for any other operator.
                only_first = {p for operator, p in found_in if operator == each.operator} == {0}
                if keyed or not (only_first and each.partition):
                    stores.setdefault(each, StoreFiles(each))
        return cls(dict(sorted(stores.items())), metadata, frozenset(checksums))


def immutable_files(content: bytes) -> dict[str, int]:
    """Return the immutable files that a RocksDB zip names, with their sizes in bytes.

    Raises:
        ValueError: the zip cannot be read completely.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            torn = archive.testzip()
            if torn is not None:
                raise ValueError(f"{torn} in it is torn")
            described = json.loads(archive.read("metadata").decode().partition("\n")[2])
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise ValueError(f"the archive cannot be read: {error}") from error
    named: list[dict[str, Any]] = [*described.get("sstFiles", []), *described.get("logFiles", [])]
    return {_immutable_name(each): int(each["sizeBytes"]) for each in named}


def cut_short(content: bytes) -> str:
    """Return why a file of changes is incomplete, as far as its format shows it; else an empty text.

    Only LZ4 (Spark's default codec, LZ4BlockOutputStream) has a format that can be checked without
    decompressing: blocks with their lengths, the last of length 0.
    """
    if not content:
        return "it is empty"
    if not content.startswith(_LZ4_MAGIC):
        return ""
    at = 0
    while at + _LZ4_HEADER <= len(content) and content.startswith(_LZ4_MAGIC, at):
        length = int.from_bytes(content[at + 9 : at + 13], "little")
        at += _LZ4_HEADER + length
        if length == 0 and at == len(content):
            return ""
    return "it ends in the middle of a block"


def _left(files: list[FileInfo], without: frozenset[str]) -> list[FileInfo]:
    return [info for info in files if info.relative not in without]


def _store(stores: dict[StoreId, StoreFiles], found: re.Match[str]) -> StoreFiles:
    each = StoreId(int(found[1]), int(found[2]), found[3] or _DEFAULT)
    return stores.setdefault(each, StoreFiles(each))


def _immutable_name(each: dict[str, Any]) -> str:
    return posixpath.basename(str(each.get("dfsSstFileName") or each.get("dfsLogFileName")))


def _expected(storage: Storage, info: FileInfo, folder: str) -> Iterator[StoreId]:
    """Yield the stores that an operator's metadata names; nothing for other files."""
    below = info.relative[len(folder) + 1 :].split("/")
    if below[1] != "_metadata":
        return
    _, lines = read_lines(storage, info.relative, 2)
    described = parse_object(storage, info.relative, lines[0] if lines else "")
    for store in described.get("stateStoreInfo", []):
        for partition in range(int(store["numPartitions"])):
            yield StoreId(int(below[0]), partition, store["storeName"])
