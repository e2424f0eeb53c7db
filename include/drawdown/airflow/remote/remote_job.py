"""Jobs whose driver runs elsewhere, started by an Airflow provider that is installed only where needed.

Each kind has a module with the provider's operators, imported when a pipeline names the kind. The request to
a service is built when the task runs, and never passes through a template.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.lineage_parent import lineage_parent
from drawdown.airflow.tasks.cluster import JobTasks, for_run, key_of
from drawdown.airflow.tasks.drain import JobOperator, origin_of
from drawdown.errors import DrawdownError, SpecError
from drawdown.launch.remote_requests.request import (
    JobRequest,
    name_of,
    new_instance,
    refuse_unreachable,
)
from drawdown.launch.sizing import Size
from drawdown.spec import RemoteCluster, load_pipeline, load_project

if TYPE_CHECKING:
    from airflow.sdk import Context

log = logging.getLogger(__name__)

_EXTRAS = {"kubernetes": "kubernetes", "emr": "amazon", "emr-serverless": "amazon", "dataproc": "google"}
"""For each kind, the extra of this package that installs its provider."""

DELAY = 15
"""Seconds between two requests for the state of a job."""


@dataclass(frozen=True)
class JobSpec:
    """One job of a DAG, independent of what runs it.

    Attributes:
        storage: the project's storage root.
    """

    project_root: str
    kind: type[JobOperator]
    pipelines: tuple[str, ...]
    cluster: str
    storage: str

    def name(self, context: Context) -> str:
        """Return the name of this run, by which all that its tries have created is found."""
        return name_of(key_of(context), self.storage)

    def order(self, context: Context, up: Mapping[str, Any] | None = None) -> JobRequest:
        """Return the job for this run.

        Args:
            up: the size of the running cluster, as its task has recorded it; None: what the backlog needs.

        Raises:
            AirflowFailException: the project has changed so that it cannot run there.
        """
        with as_failures():
            project = load_project(Path(self.project_root))
            profile = project.clusters[self.cluster]
            if not isinstance(profile, RemoteCluster):
                raise SpecError(
                    "cluster.changed", f"{self.cluster!r} is of another kind now", do="clear the DAG run"
                )
            pipelines = [load_pipeline(project, name) for name in self.pipelines]
            refuse_unreachable(project, pipelines, profile)
            project = replace(project, airflow=project.tasks_of(pipelines[0].airflow))
            run = for_run(project, context, self.pipelines, drains=self.kind.drains)
            arguments = self.kind.arguments(self.pipelines, context)
            arguments += ["--origin", json.dumps(origin_of(context) | lineage_parent(project, context))]
            size = run.size(profile) if up is None else Size(**up)
            log.info("%s", size)
            instance = new_instance(context["ti"].try_number)
            return JobRequest(project, profile, size, self.kind.job, tuple(arguments), run.key, instance)


def wired(work: JobSpec, profile: RemoteCluster, about: dict[str, Any]) -> JobTasks:
    """Return the tasks of a job on a profile.

    Args:
        about: arguments of every operator: `task_id` and `pool` of the job, `execution_timeout`, `dag`.

    Raises:
        SpecError: ``cluster.no-provider``.
    """
    try:
        module = import_module(f"drawdown.airflow.remote.{profile.kind.replace('-', '_')}_tasks")
    except ImportError as error:
        if (error.name or "drawdown").startswith("drawdown"):
            raise
        extra = _EXTRAS[profile.kind]
        raise SpecError(
            "cluster.no-provider",
            f"the kind {profile.kind} needs a provider of Airflow that is not installed ({error.name})",
            where="include/project.yaml",
            do=f"install the extra `{extra}` (see docs/clusters.md)",
        ) from None
    tasks: JobTasks = module.tasks(work, profile, about)
    return tasks


def ends(end: Callable[[], object]) -> None:
    """End what a failed task has started; never raises, so that the task's own error is what is shown."""
    try:
        end()
    except Exception as error:  # noqa: BLE001  the services' libraries have no error in common
        log.warning("It may still be running: %s. `drawdown doctor` looks for it", error)


@contextmanager
def as_failures(*refusals: type[Exception]) -> Iterator[None]:
    """Fail the task without a retry, with one sentence, on errors that a second try would meet again.

    Args:
        refusals: what a service's library raises for a request that it does not accept.
    """
    try:
        yield
    except DrawdownError as error:
        raise AirflowFailException(str(error)) from None
    except refusals as error:
        refused = SpecError(
            "cluster.request",
            f"the service's library does not take the request: {error}",
            where="include/project.yaml",
            do="correct the profile's settings for the service",
        )
        raise AirflowFailException(str(refused)) from None
