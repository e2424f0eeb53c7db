"""Who reads which Delta table of the project, and from which version on: as the readers' checkpoints say.

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
from drawdown.layout import snapshots_of
from drawdown.spec import pipeline_names
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class Readers:
    """What the pipelines of a project have still to read of Delta tables.

    Attributes:
        needed: by the table's id the oldest version that each reader needs.
        unknown: readers for which that is unknown, and why.
    """

    needed: dict[str, dict[str, int]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        workspace: Workspace,
    ) -> Readers:
        """Look into every checkpoint and snapshot of every pipeline folder of the project."""
        needed: dict[str, dict[str, int]] = defaultdict(dict)
        unknown: dict[str, str] = {}
        for name in pipeline_names(workspace.project):
            try:
                for table, version in _positions(workspace, name):
                    needed[table][name] = min(version, needed[table].get(name, version))
            except DrawdownError as error:
                unknown[name] = f"{error.id}: {error.what}"
        return cls(dict(needed), unknown)


def _positions(workspace: Workspace, name: str) -> Iterator[tuple[str, int]]:
    paths = {checkpoint.path for checkpoint in workspace.metastore.generations(name)}
    copied = workspace.storage.list_files(f"{snapshots_of(name)}/*/checkpoint/metadata")
    for path in (*paths, *(info.relative.removesuffix("/metadata") for info in copied)):
        files = CheckpointFiles(workspace.storage, path)
        # A batch that is planned reads on from the one that is committed.
        for batch in {files.last_commit_batch(), files.last_offset_batch()} - {None}:
            for offset in files.offsets(int(str(batch))).offsets:
                if isinstance(offset, dict) and "reservoirId" in offset:
                    yield str(offset["reservoirId"]), _oldest(offset)


def _oldest(offset: dict[str, Any]) -> int:
    """The version before the one to go on with: its replay reads it whole, a change feed compares with it."""
    return max(int(offset["reservoirVersion"]) - 1, 0)
