"""What functions take instead of its parts: a project with what it keeps, a generation of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from drawdown.checkpoint import CheckpointFiles
from drawdown.layout import checkpoint_of, home_of
from drawdown.metastore import Metastore
from drawdown.metastore.records import (
    Batch,
    BatchStatus,
    Checkpoint,
    QuarantineDecision,
    StagedFile,
    StagedTable,
)
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


@dataclass(frozen=True)
class Workspace:
    """A project and what it keeps: the metastore and the storage that it names."""

    project: Project
    metastore: Metastore

    @classmethod
    @contextmanager
    def open(cls, project: Project) -> Iterator[Workspace]:
        """For the block, with a connection to the metastore.

        Raises:
            DrawdownError: as `Metastore.open`.
        """
        with Metastore.open(project.metastore_url) as metastore:
            yield cls(project, metastore)

    @cached_property
    def storage(self) -> Storage:
        """Below the project's storage root."""
        return Storage(self.project.storage_root)


@dataclass(frozen=True)
class Generation:
    """One generation of a pipeline's checkpoint: its number, its files, and what is noted of it.

    Attributes:
        checkpoint: what the metastore has noted of it; None when it knows nothing, as before the first run.
    """

    workspace: Workspace
    pipeline: Pipeline
    checkpoint: Checkpoint | None

    @classmethod
    def of(cls, workspace: Workspace, pipeline: Pipeline) -> Generation:
        """The one in use, or the one that the first run makes."""
        return cls(workspace, pipeline, workspace.metastore.active_checkpoint(pipeline.name))

    @property
    def project(self) -> Project:
        return self.workspace.project

    @property
    def metastore(self) -> Metastore:
        return self.workspace.metastore

    @property
    def storage(self) -> Storage:
        return self.workspace.storage

    @cached_property
    def number(self) -> int:
        """Counted from 1.

        Raises:
            RefusedError: ``rebuild.unfinished``: which generation is next is unknown.
        """
        if self.checkpoint is None:
            return self.metastore.next_generation(self.pipeline.name)
        return self.checkpoint.generation

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What the checkpoint freezes, as noted; empty when nothing is."""
        return self.checkpoint.fingerprint if self.checkpoint else {}

    @property
    def folder(self) -> str:
        """Of all that Drawdown keeps for the pipeline, relative to the storage root."""
        return home_of(self.pipeline.name)

    @property
    def path(self) -> str:
        """Of the checkpoint, relative to the storage root."""
        return checkpoint_of(self.pipeline.name, self.number)

    @property
    def files(self) -> CheckpointFiles:
        """Of the checkpoint, as they are on storage at each call."""
        return CheckpointFiles(self.storage, self.path)

    def batch(self, batch_id: int) -> Batch | None:
        """One of its batches; None when nothing noted it."""
        return self.metastore.batch(self.pipeline.name, self.number, batch_id)

    def batches(self, statuses: Iterable[BatchStatus] | None = None, first_batch: int = 0) -> list[Batch]:
        """Its batches from ``first_batch`` on by id, of the given statuses or all."""
        return self.metastore.batches(self.pipeline.name, self.number, statuses, first_batch=first_batch)

    def staged_files(
        self, batch_ids: Iterable[int], table: StagedTable | None = None
    ) -> list[tuple[int, StagedFile]]:
        """The files that these batches have staged, each with its batch's id."""
        return self.metastore.staged_files(self.pipeline.name, self.number, batch_ids, table=table)

    def replays(self, first_batch: int) -> list[QuarantineDecision]:
        """Replays of set-aside rows that go into a batch from ``first_batch`` on."""
        return self.metastore.replays(self.pipeline.name, self.number, first_batch=first_batch)
