"""Finds who reads which Delta table of the project and from which version, in the readers' checkpoints.

Specs are not used: a pipeline whose spec is broken today may run again tomorrow. Source:
org.apache.spark.sql.delta.sources.DeltaSourceOffset (Delta 4.4): ``reservoirId`` is the table's id; after a
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
    """The versions of Delta tables that a project's pipelines still have to read.

    Attributes:
        needed: by table id, the oldest version that each reader needs.
        unknown: readers for which this is unknown, and why.
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
        # A planned batch continues from the committed one.
        for batch in {files.last_commit_batch(), files.last_offset_batch()} - {None}:
            for offset in files.offsets(int(str(batch))).offsets:
                if isinstance(offset, dict) and "reservoirId" in offset:
                    yield str(offset["reservoirId"]), _oldest(offset)


def _oldest(offset: dict[str, Any]) -> int:
    """Return the version before the next one: a replay reads it whole, and a change feed compares with it."""
    return max(int(offset["reservoirVersion"]) - 1, 0)
