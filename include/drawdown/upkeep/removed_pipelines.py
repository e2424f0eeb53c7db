"""Pipelines whose folder was removed: finds and deletes what is kept under their names.

Only names in the metastore count, because other projects may use the same storage. Output tables are never
deleted: they may have readers.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from drawdown.errors import RefusedError
from drawdown.fault_points import durable
from drawdown.layout import home_of, quarantine_of
from drawdown.metastore.lease_heartbeat import LeaseHeartbeat
from drawdown.metastore.records import UNPUBLISHED
from drawdown.spec import Pipeline, iter_pipelines, pipeline_names
from drawdown.values.nearest import did_you_mean
from drawdown.values.text import counted
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class Removed:
    """What is left of a pipeline without folder.

    Attributes:
        files: of checkpoints, snapshots and quarantine.
        waiting: batches that were not published.
    """

    name: str
    files: int
    bytes: int
    waiting: int

    def __str__(self) -> str:
        waiting = f", never published: {counted(self.waiting, 'batch')}" if self.waiting else ""
        return (
            f"{self.name} has no folder; {counted(self.files, 'file')},"
            f" {counted(self.bytes, 'byte')}{waiting} and its records are left: `drawdown remove"
            f" {self.name}`, or if it was renamed: drawdown rename {self.name} NEW"
        )


def removed_pipelines(
    workspace: Workspace,
) -> list[Removed]:
    """Return removed pipelines by name. Raises SourceError when the metastore or the storage cannot be
    reached."""
    return [
        _look(workspace, name)
        for name in sorted(workspace.metastore.names() - {*pipeline_names(workspace.project)})
    ]


def remove(workspace: Workspace, name: str, run_id: str, holder: str) -> Removed:
    """Delete checkpoints, snapshots and quarantine of a removed pipeline, then the metastore's records.

    In this order, because an interrupted removal is then still listed, and the same call completes it.

    Raises:
        RefusedError: ``remove.in-use``, ``remove.unknown``, ``remove.renamed``: nothing is touched then.
        BusyError: ``lease.held``. SourceError: the metastore or the storage cannot be reached.
    """
    refuse(workspace, name)
    found, ttl, storage = (
        _look(workspace, name),
        workspace.project.lease_ttl.delta,
        workspace.storage,
    )
    with ExitStack() as held:
        heartbeats = [
            held.enter_context(LeaseHeartbeat(side, side.acquire(name, holder, run_id, ttl), ttl))
            for side in (workspace.metastore.of_rebuilds, workspace.metastore)
        ]
        for folder in _folders(name):
            for heartbeat in heartbeats:
                heartbeat.check()
            with durable("remove.files"):
                storage.delete(folder)
        with durable("remove.records"):
            workspace.metastore.forget(heartbeats[-1].lease)
    return found


def refuse(workspace: Workspace, name: str) -> None:
    """Refuse a pipeline that was not removed, or that continues under another name."""
    if name in pipeline_names(workspace.project):
        raise RefusedError(
            "remove.in-use",
            f"{name} is a pipeline of this project; nothing was removed",
            where=str(workspace.project.pipelines_dir / name),
            do=f"remove its folder first: git rm -r include/pipelines/{name}",
        )
    generations = workspace.metastore.generations(name)
    if name not in (known := workspace.metastore.names()):
        removed = known - {*pipeline_names(workspace.project)}
        raise RefusedError(
            "remove.unknown",
            f"the metastore has no records of {name}; {did_you_mean(name, removed)}",
            where=f"pipeline {name}",
            do="`drawdown upkeep --all --dry-run` lists the leftovers of removed pipelines",
        )
    first = {name, *(str(each.fingerprint.get("sink.name", name)) for each in generations)}
    for other in iter_pipelines(workspace.project):
        waits = isinstance(other, Pipeline) and other.first_name in first
        if isinstance(other, Pipeline) and waits and not workspace.metastore.generations(other.name):
            raise RefusedError(
                "remove.renamed",
                f"{other.name} has `first_name: {other.first_name}`: it is {name} under a new name",
                where=str(other.folder / "pipeline.yaml"),
                do=f"drawdown rename {name} {other.name} --why ...",
            )


def _look(workspace: Workspace, name: str) -> Removed:
    storage = workspace.storage
    sizes = [info.size for folder in _folders(name) for info in storage.walk(folder)]
    waiting = [
        batch
        for each in workspace.metastore.generations(name)
        if each.state != "retired"
        for batch in workspace.metastore.batches(name, each.generation, UNPUBLISHED)
    ]
    return Removed(name, len(sizes), sum(sizes), len(waiting))


def _folders(name: str) -> tuple[str, str]:
    return home_of(name), quarantine_of(name)
