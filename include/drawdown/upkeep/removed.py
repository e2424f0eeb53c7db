"""Pipelines whose folder is gone: what is kept under their names, and how to be rid of it.

Only names that the metastore knows count: other projects may use the same storage. Their tables stay whatever
happens here: readers may want them.
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
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class Removed:
    """What is left of a pipeline without a folder.

    Attributes:
        files: of checkpoints, snapshots and quarantine.
        waiting: batches that were not published.
    """

    name: str
    files: int
    bytes: int
    waiting: int

    def __str__(self) -> str:
        waiting = f", {self.waiting:,} batch(es) that were never published" if self.waiting else ""
        return (
            f"{self.name} has no folder any more; {self.files:,} files, {self.bytes:,} bytes{waiting} and its"
            f" records are left: drawdown remove {self.name}; after a change of its name: drawdown rename"
            f" {self.name} NEW"
        )


def removed_pipelines(
    workspace: Workspace,
) -> list[Removed]:
    """By name. Raises SourceError when the metastore or the storage cannot be reached."""
    return [
        _look(workspace, name)
        for name in sorted(workspace.metastore.names() - {*pipeline_names(workspace.project)})
    ]


def remove(workspace: Workspace, name: str, run_id: str, holder: str) -> Removed:
    """Delete checkpoints, snapshots and quarantine of a removed pipeline, then what the metastore knows.

    In this order: cut off half-way it is still listed, and the same call completes it.

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
    """Refuse what is no removed pipeline, or one that goes on under another name."""
    if name in pipeline_names(workspace.project):
        raise RefusedError(
            "remove.in-use",
            f"{name} is a pipeline of this project; nothing was removed",
            where=str(workspace.project.pipelines_dir / name),
            do=f"remove its folder first: git rm -r include/pipelines/{name}",
        )
    generations = workspace.metastore.generations(name)
    if name not in workspace.metastore.names():
        raise RefusedError(
            "remove.unknown",
            f"the metastore knows nothing of {name}",
            where=f"pipeline {name}",
            do="`drawdown upkeep --all --dry-run` lists what removed pipelines have left",
        )
    first = {name, *(str(each.fingerprint.get("sink.name", name)) for each in generations)}
    for other in iter_pipelines(workspace.project):
        waits = isinstance(other, Pipeline) and other.first_name in first
        if isinstance(other, Pipeline) and waits and not workspace.metastore.generations(other.name):
            raise RefusedError(
                "remove.renamed",
                f"{other.name} says `first_name: {other.first_name}`: it is {name} under another name",
                where=str(other.folder / "pipeline.yaml"),
                do=f"drawdown rename {name} {other.name}",
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
