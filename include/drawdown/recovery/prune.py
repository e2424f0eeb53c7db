"""Prune: remove what no restart needs, under the lease, so that no writer is at work.

- log entries and state that Spark would have purged: older than its minBatchesToRetain newest batches;
- checksums and half-written files that belong to nothing;
- folders of older generations, once none of their batches waits for a verdict or to be published;
- rows that wait apart from the target and that no batch waits for;
- snapshots, and copies that repairs kept aside, but for the newest; snapshots that were cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from drawdown.checkpoint import StateFiles, checksum_path, delete_with_checksum
from drawdown.checkpoint.state_files import immutable_files
from drawdown.metastore.records import UNPUBLISHED, Lease
from drawdown.publishing.staging import staging_folder, sweep
from drawdown.recovery.generation import Generation
from drawdown.recovery.snapshots import snapshots
from drawdown.spec.query_settings import BATCHES_TO_RETAIN
from drawdown.storage import FileInfo

_RETAIN = "spark.sql.streaming.minBatchesToRetain"
_NUMBERED = re.compile(r"(?:checkpoint|carriers)-(\d+)")


@dataclass(frozen=True)
class Pruned:
    """What is gone: paths relative to the storage root with their bytes, by what they were."""

    removed: dict[str, list[FileInfo]]

    @property
    def bytes(self) -> int:
        return sum(info.size for infos in self.removed.values() for info in infos)

    @property
    def files(self) -> int:
        return sum(len(infos) for infos in self.removed.values())


def prune(generation: Generation, current: Callable[[], Lease], *, keep: int) -> Pruned:
    """Remove what the module's page lists.

    Args:
        keep: so many of the newest snapshots, and of the copies of repairs, stay.

    Raises:
        SourceError: the storage cannot be reached.
    """
    storage, folder = generation.storage, generation.folder
    removed = {
        "batches": list(_old_batches(generation)),
        "state": list(_old_state(generation)),
        "leftovers": list(_leftovers(generation)),
        "generations": list(_old_generations(generation)),
        "staged": list(_staged(generation)),
        "snapshots": [
            *_old_snapshots(generation, keep),
            *_old_folders(generation, f"{folder}/repaired", keep),
        ],
    }
    for infos in removed.values():
        for info in infos:
            current()
            delete_with_checksum(storage, info.relative)
    if removed["staged"]:
        sweep(generation.metastore, current(), storage, generation.pipeline, generation.number, ())
    return Pruned({what: infos for what, infos in removed.items() if infos})


def _first_kept(generation: Generation) -> int:
    """The oldest batch that Spark itself would keep."""
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
    """Versions before what the oldest kept batch starts from, and RocksDB's files that no kept one names."""
    first = _first_kept(generation)
    for store in StateFiles.read(generation.storage, generation.path).stores.values():
        bases = [version for version in store.whole if version <= first + 1]
        if not bases or store.needed(first + 1)[1]:
            continue
        base = max(bases)
        for version, info in store.files():
            # The changes that led to a whole state are as old as it, and nothing starts from them.
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
    """The file that a checksum is of."""
    folder, _, name = checksum.rpartition("/")
    return f"{folder}/{name.removeprefix('.').removesuffix('.crc')}"


def _old_generations(generation: Generation) -> Iterator[FileInfo]:
    storage = generation.storage
    for info in storage.walk(generation.folder):
        numbered = _NUMBERED.fullmatch(info.relative[len(generation.folder) + 1 :].split("/")[0])
        if numbered and int(numbered[1]) < generation.number and not _waits(generation, int(numbered[1])):
            yield info


def _waits(generation: Generation, number: int) -> bool:
    return bool(generation.metastore.batches(generation.pipeline.name, number, statuses=UNPUBLISHED))


def _staged(generation: Generation) -> Iterator[FileInfo]:
    of, metastore = (generation.pipeline.name, generation.number), generation.metastore
    waiting = [batch.batch_id for batch in metastore.batches(*of, statuses=UNPUBLISHED)]
    kept = {file.path for _, file in metastore.staged_files(*of, waiting, table="output")}
    for info in generation.storage.walk(staging_folder(generation.pipeline), depth=1):
        if info.path not in kept and info.name.endswith(".parquet"):
            yield info


def _old_snapshots(generation: Generation, keep: int) -> Iterator[FileInfo]:
    """All but the newest finished ones; the rest of one that was cut off goes, too."""
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
