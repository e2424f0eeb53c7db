"""Prune: removes what a restart does not need, under the lease, so that no writer is active.

- log entries and state that Spark would purge: older than its minBatchesToRetain newest batches;
- orphaned checksums and half-written files;
- folders of retired generations and their leftovers below the tables, except the generation that a roll back
  would make live again;
- staged rows outside the target that no batch needs;
- snapshots and copies made by repairs, except the newest; interrupted snapshots.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from drawdown.checkpoint import StateFiles, checksum_path, delete_with_checksum
from drawdown.checkpoint.state_files import immutable_files
from drawdown.delta.table import DeltaTableFiles
from drawdown.metastore.records import UNPUBLISHED, Lease
from drawdown.recovery.snapshots import snapshots
from drawdown.sinks.locations import output_uri, quarantine_uri
from drawdown.sinks.staging_folder import staging_folder
from drawdown.spec import Pipeline
from drawdown.spec.pipeline import SHADOWS
from drawdown.spec.query_settings import BATCHES_TO_RETAIN
from drawdown.storage import FileInfo, Storage
from drawdown.workspace import Generation

_RETAIN = "spark.sql.streaming.minBatchesToRetain"
_NUMBERED = re.compile(r"(?:checkpoint|carriers|schema)-(\d+)")


@dataclass(frozen=True)
class Pruned:
    """What was removed: paths relative to the storage root with their bytes, by type."""

    removed: dict[str, list[FileInfo]]

    @property
    def bytes(self) -> int:
        return sum(info.size for infos in self.removed.values() for info in infos)

    @property
    def files(self) -> int:
        return sum(len(infos) for infos in self.removed.values())


def prune(
    generation: Generation, current: Callable[[], Lease], *, keep: int, previous: bool = False
) -> Pruned:
    """Remove what the module docstring lists.

    Args:
        keep: the number of newest snapshots, and of copies made by repairs, to keep.
        previous: also remove what a roll back of the last swap needs.

    Raises:
        SourceError: the storage cannot be reached.
    """
    found = prunable(generation, keep=keep, previous=previous)
    remove(generation, found, current)
    return found


def prunable(
    generation: Generation,
    *,
    keep: int,
    previous: bool = False,
    named: Callable[[str], set[str]] = lambda table: DeltaTableFiles(table).referenced(),
) -> Pruned:
    """Return what `prune` would remove.

    Args:
        named: by table address, the absolute paths of files to keep.
    """
    found = {
        "batches": list(_old_batches(generation)),
        "state": list(_old_state(generation)),
        "leftovers": list(_leftovers(generation)),
        "generations": list(_old_generations(generation, previous, named)),
        "staged": list(_staged(generation)),
        "snapshots": [
            *_old_snapshots(generation, keep),
            *_old_folders(generation, f"{generation.folder}/repaired", keep),
        ],
    }
    return Pruned({what: infos for what, infos in found.items() if infos})


def remove(generation: Generation, found: Pruned, current: Callable[[], Lease]) -> None:
    """Remove what `prunable` found."""
    storage = generation.storage
    for infos in found.removed.values():
        for info in infos:
            current()
            delete_with_checksum(storage, info.relative)


def _first_kept(generation: Generation) -> int:
    """Return the oldest batch that Spark itself would keep."""
    retain = int(generation.pipeline.conf.get(_RETAIN, BATCHES_TO_RETAIN))
    committed = generation.files.last_commit_batch()
    return 0 if committed is None else max(committed + 1 - max(retain, 2), 0)


def _old_batches(generation: Generation) -> Iterator[FileInfo]:
    first = _first_kept(generation)
    for log in ("offsets", "commits"):
        for info in generation.storage.walk(f"{generation.path}/{log}", depth=1):
            if info.name.isdigit() and int(info.name) < first:
                yield info


def _old_state(generation: Generation) -> Iterator[FileInfo]:
    """Yield state versions older than the oldest kept batch needs, and RocksDB files that no kept version
    names."""
    first = _first_kept(generation)
    for store in StateFiles.read(generation.storage, generation.path).stores.values():
        bases = [version for version in store.whole if version <= first + 1]
        if not bases or store.needed(first + 1)[1]:
            continue
        base = max(bases)
        for version, info in store.files():
            # A snapshot contains all changes up to its version, so loading needs only later ones.
            if version < base or (version == base and info in store.changes.get(base, ())):
                yield info
        kept = [info for version in store.whole if version >= base for info in store.whole[version]]
        zips = [info for info in kept if info.name.endswith(".zip")]
        named = {n for info in zips for n in immutable_files(generation.storage.read_bytes(info.relative))}
        if zips:
            yield from (info for name, info in store.immutable.items() if name not in named)


def _leftovers(generation: Generation) -> Iterator[FileInfo]:
    infos = {info.relative: info for info in generation.storage.walk(generation.path)}
    for path, info in infos.items():
        if info.name.endswith(".tmp") or (
            info.name.endswith(".crc")
            and path not in {checksum_path(_main(path)) if _main(path) in infos else ""}
        ):
            yield info


def _main(checksum: str) -> str:
    """Return the file that a checksum belongs to."""
    folder, _, name = checksum.rpartition("/")
    return f"{folder}/{name.removeprefix('.').removesuffix('.crc')}"


def _old_generations(
    generation: Generation, previous: bool, named: Callable[[str], set[str]]
) -> Iterator[FileInfo]:
    storage, retired = generation.storage, _retired(generation, previous)
    for info in storage.walk(generation.folder):
        numbered = _NUMBERED.fullmatch(info.relative[len(generation.folder) + 1 :].split("/")[0])
        if numbered and int(numbered[1]) in retired:
            yield info
    for number in retired:
        shadow = generation.pipeline.as_shadow(number, {})
        for uri in (output_uri, quarantine_uri):
            yield from _left_below(storage, uri(generation.project, generation.pipeline), shadow, named)


def _retired(generation: Generation, previous: bool) -> list[int]:
    live = generation.checkpoint
    needed = {live.rebuild["before"]["generation"]} if live and "before" in live.rebuild else set()
    there = generation.metastore.generations(generation.pipeline.name)
    return [
        each.generation
        for each in there
        if each.state == "retired" and (previous or each.generation not in needed)
    ]


def _left_below(
    storage: Storage, table: str, shadow: Pipeline, named: Callable[[str], set[str]]
) -> Iterator[FileInfo]:
    """Yield a retired shadow's files that the table no longer names."""
    files = list(storage.walk(f"{storage.relative(table)}/{shadow.apart}"))
    stay = named(table) if files else set()
    yield from (info for info in files if info.path not in stay)


def _staged(generation: Generation) -> Iterator[FileInfo]:
    """Yield staged files that no waiting batch names, outside open changes and rebuilds."""
    waiting = [batch.batch_id for batch in generation.batches(UNPUBLISHED)]
    kept = {file.path for _, file in generation.staged_files(waiting, "output")}
    folder = staging_folder(generation.pipeline)
    open_changes = generation.metastore.open_changes(generation.pipeline.name)
    places = [change.place for change in open_changes if change.place]
    apart = tuple(f"{place}/" for place in (f"{folder}/{SHADOWS}", *places))
    for info in generation.storage.walk(folder):
        if info.path not in kept and not info.relative.startswith(apart) and info.name.endswith(".parquet"):
            yield info


def _old_snapshots(generation: Generation, keep: int) -> Iterator[FileInfo]:
    """Yield all but the newest finished snapshots, and the remains of interrupted ones."""
    storage, folder = generation.storage, f"{generation.folder}/snapshots"
    finished = [each.path for each in snapshots(storage, generation.pipeline.name)]
    kept = set(finished[len(finished) - min(keep, len(finished)) :])
    for info in storage.walk(folder):
        if "/".join(info.relative.split("/")[:4]) not in kept:
            yield info


def _old_folders(generation: Generation, folder: str, keep: int) -> Iterator[FileInfo]:
    infos = list(generation.storage.walk(folder))
    names = sorted({info.relative[len(folder) + 1 :].split("/")[0] for info in infos})
    old = set(names[: len(names) - min(keep, len(names))])
    yield from (info for info in infos if info.relative[len(folder) + 1 :].split("/")[0] in old)
