"""Who reads which Delta table of the project, and from which version on: told by the readers' checkpoints.

Not by their specs: a pipeline whose spec is broken today goes on tomorrow. Source:
org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4): ``reservoirId`` is the table's id; behind a
whole version the offset names the next one (``reservoirVersion``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drawdown.checkpoint import CheckpointFiles
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.spec import Project, pipeline_names
from drawdown.storage import Storage


@dataclass(frozen=True)
class Readers:
    """What the pipelines of a project have still to read of Delta tables.

    Attributes:
        needed: by the table's id the oldest version that each reader needs.
        unknown: readers of which that cannot be told, and why.
    """

    needed: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, project: Project, metastore: Metastore) -> Readers:
        """Look into every checkpoint and snapshot of every pipeline folder of the project."""
        storage = Storage(project.storage_root)
        needed: dict[str, dict[str, int]] = defaultdict(dict)
        unknown: dict[str, str] = {}
        for name in pipeline_names(project):
            try:
                for table, version in _positions(storage, metastore, name):
                    needed[table][name] = min(version, needed[table].get(name, version))
            except DrawdownError as error:
                unknown[name] = f"{error.id}: {error.what}"
        return cls(dict(needed), unknown)


def _positions(storage: Storage, metastore: Metastore, name: str) -> Iterator[tuple[str, int]]:
    paths = {checkpoint.path for checkpoint in metastore.generations(name)}
    copied = storage.list_files(f"_drawdown/{name}/snapshots/*/checkpoint/metadata")
    for path in (*paths, *(info.relative.removesuffix("/metadata") for info in copied)):
        files = CheckpointFiles(storage, path)
        # A batch that is planned reads on from the one that is committed.
        for batch in {files.last_commit_batch(), files.last_offset_batch()} - {None}:
            for offset in files.offsets(int(str(batch))).offsets:
                if isinstance(offset, dict) and "reservoirId" in offset:
                    yield str(offset["reservoirId"]), _oldest(offset)


def _oldest(offset: dict[str, Any]) -> int:
    """The version before the one to go on with: its replay reads it whole, a change feed compares with it."""
    return max(int(offset["reservoirVersion"]) - 1, 0)
