"""Vacuum: removes Parquet files from a table's folder. A file is removed only if all of this holds:

- no version from `oldest_needed` on names it;
- no unpublished batch (staged, judged, held or passed) has staged it;
- it is older than the retention, because an open commit may name it;
- it is not in another folder: the log, another table, an active rebuild, names that begin with an underscore
  or a dot.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from drawdown.delta.log import TableLog
from drawdown.metastore.records import UNPUBLISHED
from drawdown.spec.pipeline import SHADOWS
from drawdown.storage import FileInfo
from drawdown.upkeep.needed_versions import Needed
from drawdown.workspace import Generation

_CHANGES = "_change_data"
_LOG = "_delta_log"


def unneeded_files(generation: Generation, log: TableLog, needed: Needed, now: datetime) -> list[FileInfo]:
    """Return the removable files; the caller holds the pipeline's lease until they are removed.

    Raises:
        SourceError: the storage or the table cannot be reached.
    """
    until_ms = (now - generation.project.upkeep.vacuum.delta).timestamp() * 1_000
    there = list(generation.storage.walk(log.folder))
    foreign = _other_tables(log, there)
    open_to = _own_shadows(generation)
    old = [
        info
        for info in there
        if info.name.endswith(".parquet")
        and info.mtime_ms < until_ms
        and not info.relative.startswith(foreign)
        and _is_data(info.relative[len(log.folder) + 1 :].split("/")[:-1], open_to)
    ]
    if not old:
        return []
    stay = log.named_since(needed.version) | _waiting(generation)
    return [info for info in old if info.path not in stay]


def _waiting(generation: Generation) -> set[str]:
    """Return absolute paths of staged, unpublished files of every generation."""
    metastore, name = generation.metastore, generation.pipeline.name
    found: set[str] = set()
    for each in metastore.generations(name):
        waiting = metastore.batches(name, each.generation, UNPUBLISHED)
        files = metastore.staged_files(name, each.generation, [batch.batch_id for batch in waiting])
        found |= {file.path for _, file in files}
    return found


def _own_shadows(generation: Generation) -> frozenset[str]:
    """Return the folders below `_rebuild` whose files belong, or belonged, to the table: no rebuild writes
    there."""
    there = generation.metastore.generations(generation.pipeline.name)
    return frozenset(str(each.generation) for each in there if each.state in ("live", "retired"))


def _other_tables(log: TableLog, there: list[FileInfo]) -> tuple[str, ...]:
    """Return folders of other tables inside this one, with a slash at the end; shadows do not count."""
    return tuple({folder for info in there for folder in _table_of(log, info)})


def _table_of(log: TableLog, info: FileInfo) -> Iterator[str]:
    folder, found, _ = info.relative.partition(f"/{_LOG}/")
    if found and folder != log.folder and not folder.startswith(f"{log.folder}/{SHADOWS}/"):
        yield f"{folder}/"


def _is_data(folders: list[str], open_to: frozenset[str]) -> bool:
    if folders[:1] == [SHADOWS]:
        if len(folders) < 2 or folders[1] not in open_to:
            return False
        folders = folders[2:]
    if folders[:1] == [_CHANGES]:
        folders = folders[1:]
    return not any(name.startswith((".", "_")) and "=" not in name for name in folders)
