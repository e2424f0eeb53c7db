"""Objects that functions take instead of their parts: an open project, and a generation of a pipeline."""

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
    """A project with its open metastore and its storage."""

    project: Project
    metastore: Metastore

    @classmethod
    @contextmanager
    def open(cls, project: Project) -> Iterator[Workspace]:
        """Open a project for the block, with a connection to the metastore.

        Raises:
            DrawdownError: see `Metastore.open`.
        """
        with Metastore.open(project.metastore_url) as metastore:
            yield cls(project, metastore)

    @cached_property
    def storage(self) -> Storage:
        """Return the storage of the project's storage root."""
        return Storage.of(self.project)


@dataclass(frozen=True)
class Generation:
    """One generation of a pipeline's checkpoint: its number, its files and its records.

    Attributes:
        checkpoint: its record in the metastore; None without one, as before the first run.
    """

    workspace: Workspace
    pipeline: Pipeline
    checkpoint: Checkpoint | None

    @classmethod
    def of(cls, workspace: Workspace, pipeline: Pipeline) -> Generation:
        """Return the generation in use, or the one that the first run will create."""
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
        """Return the generation's number, counted from 1.

        Raises:
            RefusedError: ``rebuild.unfinished``: which generation is next is unknown.
        """
        if self.checkpoint is None:
            return self.metastore.next_generation(self.pipeline.name)
        return self.checkpoint.generation

    @property
    def record(self) -> Checkpoint:
        """Return its record, which every run has made before its query starts.

        Raises:
            LookupError: the generation has no record yet.
        """
        if self.checkpoint is None:
            raise LookupError(f"{self.pipeline.name} has no checkpoint yet")
        return self.checkpoint

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Return what the checkpoint fixes of the spec, as recorded; empty without a record."""
        return self.checkpoint.fingerprint if self.checkpoint else {}

    @property
    def folder(self) -> str:
        """Return the folder of all that Drawdown keeps for the pipeline, relative to the storage root."""
        return home_of(self.pipeline.name)

    @property
    def path(self) -> str:
        """Return the checkpoint's folder, relative to the storage root."""
        return checkpoint_of(self.pipeline.name, self.number)

    @property
    def files(self) -> CheckpointFiles:
        """Return the checkpoint's files, which are read from storage at each call."""
        return CheckpointFiles(self.storage, self.path, self.fingerprint.get("source_order", ()))

    def batch(self, batch_id: int) -> Batch | None:
        """Return one of its batches; None when it is not recorded."""
        return self.metastore.batch(self.pipeline.name, self.number, batch_id)

    def batches(self, statuses: Iterable[BatchStatus] | None = None, first_batch: int = 0) -> list[Batch]:
        """Return its batches from ``first_batch`` on, sorted by id, of the given statuses or all."""
        return self.metastore.batches(self.pipeline.name, self.number, statuses, first_batch=first_batch)

    def staged_files(
        self, batch_ids: Iterable[int], table: StagedTable | None = None
    ) -> list[tuple[int, StagedFile]]:
        """Return the files that these batches have staged, each with its batch's id."""
        return self.metastore.staged_files(self.pipeline.name, self.number, batch_ids, table=table)

    def replays(self, first_batch: int) -> list[QuarantineDecision]:
        """Return the replays of quarantined rows that go into batches from ``first_batch`` on."""
        return self.metastore.replays(self.pipeline.name, self.number, first_batch=first_batch)
