"""The settings of an application on a cluster profile of any kind.

A cluster that an earlier task started for the run is used; if there is none, or it has ended, a
cluster is started that lives as long as the application.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from drawdown.errors import SpecError
from drawdown.launch.commands import cluster as commands
from drawdown.launch.commands.request import CommandsRequest
from drawdown.launch.connection import SparkConnection, connected
from drawdown.launch.local import submit_conf
from drawdown.launch.settings import Settings
from drawdown.launch.sizing import Backlogs, Size, workers_for
from drawdown.launch.standalone.cluster import Ask, attended, settings_of, standing
from drawdown.launch.standalone.cluster_folder import ClusterRecord
from drawdown.metastore.records import StartedCluster
from drawdown.spec import (
    CommandsCluster,
    ConnectionCluster,
    Project,
    RemoteCluster,
    SizedCluster,
    StandaloneCluster,
)

_WHY = "workers_why"
"""Key in the cluster's record: why it has so many workers."""


@dataclass(frozen=True)
class ClusterRequest:
    """The run that a cluster is for, and what only the caller knows.

    Attributes:
        key: the run's key, by which its cluster is found again.
        by: who requested the run, for the record.
        backlogs: returns what waits at each pipeline; called only if the profile sizes by it. None when the
            run reads something else.
        look_up: finds an Airflow connection by its id.
    """

    key: str
    by: Mapping[str, Any]
    backlogs: Callable[[], Backlogs] | None
    look_up: Callable[[str], SparkConnection]

    def ask(self, profile: StandaloneCluster) -> Ask:
        """Return the request for a cluster of the size that this run needs, which its record says."""
        size = self.size(profile)
        return Ask(self.key, profile, size.workers, {**self.by, _WHY: size.why})

    def of_commands(self, project: Project, name: str, profile: CommandsCluster) -> CommandsRequest:
        """Return the request for a cluster that the project's programs start."""
        size = self.size(profile)
        by = {**self.by, _WHY: size.why}
        return CommandsRequest(project, name, profile, self.key, size.workers, by)

    def size(self, profile: SizedCluster) -> Size:
        """Return how many workers this run needs, and why."""
        fixed = isinstance(profile.workers, int)
        return workers_for(profile, None if fixed or self.backlogs is None else self.backlogs())


@contextmanager
def on_cluster(project: Project, name: str, run: ClusterRequest) -> Iterator[Settings]:
    """Yield the settings of an application that runs inside the block.

    Args:
        name: the profile's name.

    Raises:
        MachineError: ``cluster.not-up``, ``jars.missing``; see `commands.cluster.spin_up`.
        SpecError: ``cluster.only-its-dag``; what `look_up` and `connected` raise.
    """
    profile = project.clusters[name]
    if isinstance(profile, RemoteCluster):
        raise SpecError(
            "cluster.only-its-dag",
            f"the driver of cluster {name!r} ({profile.kind}) runs elsewhere, and only DAGs that drain "
            "or replay a pipeline can start it",
            where="include/project.yaml",
            do="trigger that DAG, or let `cluster:` in pipeline.yaml name another one for this time",
        )
    if isinstance(profile, ConnectionCluster):
        yield connected(project, profile, run.look_up(profile.connection))
    elif isinstance(profile, CommandsCluster):
        with _on_commands(run.of_commands(project, name, profile)) as settings:
            yield settings
    elif not isinstance(profile, StandaloneCluster):
        yield Settings(submit_conf(project, profile))
    elif (cluster := standing(project, run.key)) is not None:
        yield _sized(settings_of(project, profile, cluster), cluster)
    else:
        with attended(project, run.ask(profile)) as cluster:
            yield _sized(settings_of(project, profile, cluster), cluster)


@contextmanager
def _on_commands(request: CommandsRequest) -> Iterator[Settings]:
    with ExitStack() as stack:
        cluster = commands.standing(request.project, request.key)
        if cluster is None:
            cluster = stack.enter_context(commands.attended(request))
        yield _sized(stack.enter_context(commands.settings_of(request, cluster)), cluster)


def size_of(ask: Ask | CommandsRequest) -> Size:
    """Return the size that a cluster is asked for in."""
    return Size(ask.workers, str(ask.by.get(_WHY, "")))


def _sized(settings: Settings, cluster: ClusterRecord | StartedCluster) -> Settings:
    size = Size(cluster.workers, str(cluster.asked_by.get(_WHY, "")))
    return replace(settings, conf={**settings.conf, **size.settings})
