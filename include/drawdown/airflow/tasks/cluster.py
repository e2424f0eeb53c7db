"""The tasks `cluster_up` and `cluster_down` around a job whose cluster is started for it.

`cluster_up` is a setup and `cluster_down` its teardown, which runs whatever happened to the job, unless
nothing was set up. A setup that fails or is killed ends what it had begun (see
drawdown.launch.standalone.cluster); a cluster that no task takes down ends after the profile's `ttl`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseHook, BaseOperator
from airflow.sdk.exceptions import AirflowNotFoundException

from drawdown.airflow.task_arguments import of_job
from drawdown.airflow.tasks.cluster_down import DOWN_AGAIN, TakesDown
from drawdown.airflow.tasks.task_failures import NoRetryOfPermanent, WorthRetrying, plainly
from drawdown.errors import DrawdownError, MachineError, SpecError
from drawdown.launch.commands import cluster as commands
from drawdown.launch.commands.request import ALIVE_WITHIN, MASTER_WITHIN, CommandsRequest
from drawdown.launch.connection import SparkConnection
from drawdown.launch.loss import dag_run_key
from drawdown.launch.profile import ClusterRequest, size_of
from drawdown.launch.remote_requests.request import refuse_unreachable
from drawdown.launch.sizing import Backlogs, waiting_for
from drawdown.launch.standalone.cluster import Ask, give_up, shut_down, spin_up
from drawdown.launch.standalone.supervisor import STARTS_WITHIN
from drawdown.spec import (
    CommandsCluster,
    Pipeline,
    Project,
    RemoteCluster,
    RunCluster,
    load_pipeline,
    load_project,
)
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.airflow.tasks.drain import JobOperator

_UP_WITHIN = timedelta(seconds=2 * STARTS_WITHIN)
UP, DOWN = "cluster_up", "cluster_down"
LAST: dict[str, Any] = {"weight_rule": "absolute", "priority_weight": 1}
"""Drains go first among the tasks that wait for the pool, so that no cluster is idle."""


@dataclass(frozen=True)
class JobTasks:
    """A job, and the tasks that set its cluster up and take it down, if there are any."""

    job: BaseOperator
    up: BaseOperator | None = None
    down: BaseOperator | None = None


def job_behind(
    before: BaseOperator,
    project: Project,
    pipelines: Sequence[Pipeline],
    kind: type[JobOperator],
    dag: DAG,
) -> BaseOperator:
    """Add the task of a job after another task, with cluster tasks around it if its profile says so.

    Args:
        pipelines: they share one cluster profile.

    Raises:
        SpecError: ``cluster.no-provider``, ``cluster.storage``, ``cluster.metastore``, ``cluster.login``.
    """
    names, cluster = [pipeline.name for pipeline in pipelines], pipelines[0].cluster
    profile = project.clusters[cluster]
    about: dict[str, Any] = {
        "task_id": kind.job,
        "dag": dag,
        **of_job(project.tasks_of(pipelines[0].airflow)),
    }
    if isinstance(profile, RemoteCluster):
        from drawdown.airflow.remote.remote_job import JobSpec, wired

        refuse_unreachable(project, pipelines, profile)
        work = JobSpec(str(project.root), kind, tuple(names), cluster, project.storage_root)
        tasks = wired(work, profile, about)
    else:
        root = str(project.root)
        job = kind(project_root=root, pipelines=names, cluster=cluster, **about)
        if isinstance(profile, CommandsCluster):
            commands.refuse_unusable(project, profile)
        tasks = _standing_for(job, profile, dag) if isinstance(profile, RunCluster) else JobTasks(job)
    if tasks.up is None or tasks.down is None:
        tasks.job.set_upstream(before)
        return tasks.job
    tasks.up.is_setup = True
    tasks.down.as_teardown(setups=tasks.up, on_failure_fail_dagrun=True)
    tasks.up.set_upstream(before)
    tasks.job.set_upstream(tasks.up)
    tasks.down.set_upstream(tasks.job)
    return tasks.job


def _standing_for(job: JobOperator, profile: RunCluster, dag: DAG) -> JobTasks:
    up = ClusterUpOperator(
        task_id=UP,
        project_root=job.project_root,
        pipelines=job.pipelines,
        cluster=job.cluster,
        drains=job.drains,
        pool=job.pool,
        execution_timeout=_up_within(profile),
        dag=dag,
        **LAST,
    )
    again = {**DOWN_AGAIN, "retry_policy": NoRetryOfPermanent()}
    down = ClusterDownOperator(task_id=DOWN, project_root=job.project_root, dag=dag, **again)
    return JobTasks(job, up, down)


def _up_within(profile: RunCluster) -> timedelta:
    """Return the time after which Airflow ends the set-up; the profile's own limits come first."""
    if not isinstance(profile, CommandsCluster):
        return _UP_WITHIN
    checks = timedelta(seconds=ALIVE_WITHIN + MASTER_WITHIN)
    return profile.up_within.delta + profile.down_within.delta + 2 * checks


def for_run(project: Project, context: Context, pipelines: Sequence[str], *, drains: bool) -> ClusterRequest:
    """Identify the DAG run that owns a cluster, so that all its tasks share one.

    Args:
        drains: whether the job reads the pipelines' backlog.
    """
    ti = context["ti"]
    by = {"dag_id": ti.dag_id, "dag_run_id": ti.run_id, "task_id": ti.task_id, "try_number": ti.try_number}
    backlogs = partial(_backlogs, project, pipelines) if drains else None
    return ClusterRequest(key_of(context), by, backlogs, _spark_connection)


class ClusterUpOperator(BaseOperator):
    """Starts the cluster of a run, sized by its backlog.

    Returns:
        ``{"master": url, "workers": n, "until": seconds since 1970 UTC}``, as XCom, for people.
    """

    def __init__(
        self, *, project_root: str, pipelines: list[str], cluster: str, drains: bool, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipelines = pipelines
        self.cluster = cluster
        self.drains = drains
        self._ask: Ask | None = None

    @plainly
    def execute(self, context: Context) -> dict[str, Any] | None:
        try:
            project = load_project(Path(self.project_root))
            profile = project.clusters.get(self.cluster)
            if not isinstance(profile, RunCluster):
                self.log.info("The profile %s has changed: no cluster is spun up", self.cluster)
                return None
            run = for_run(project, context, self.pipelines, drains=self.drains)
            if isinstance(profile, CommandsCluster):
                return self._by_commands(run.of_commands(project, self.cluster, profile))
            return self._here(project, run.ask(profile))
        except SpecError:
            raise
        except DrawdownError as error:
            raise WorthRetrying(str(error)) from None

    def _here(self, project: Project, ask: Ask) -> dict[str, Any]:
        self._ask = ask
        self.log.info("Spinning up %s", size_of(ask))
        cluster = spin_up(project, ask)
        return {"master": cluster.master, "workers": cluster.workers, "until": cluster.until}

    def _by_commands(self, request: CommandsRequest) -> dict[str, Any]:
        self.log.info("Calling %s for %s", request.profile.up, size_of(request))
        cluster = commands.spin_up(request)
        answer = cluster.answer or {}
        self.log.info("The master is %s", answer.get("master"))
        until = cluster.deadline.timestamp()
        return {"master": answer.get("master"), "workers": cluster.workers, "until": until}

    def on_kill(self) -> None:
        """End the cluster that this try has started; whatever waits for it then sees that it has ended.

        A guard calls `down` of a commands profile: it may take longer than a killed task has.
        """
        if self._ask is not None:
            give_up(load_project(Path(self.project_root)), self._ask)


class ClusterDownOperator(TakesDown):
    """Ends the clusters of a run, and waits until none of their processes is left.

    A `down` that fails is called again by the next tries, and later by `drawdown__freshness`.
    """

    def __init__(self, *, project_root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root

    @plainly
    def execute(self, context: Context) -> None:
        project, key = load_project(Path(self.project_root)), key_of(context)
        try:
            there = shut_down(project, key)
            if any(isinstance(profile, CommandsCluster) for profile in project.clusters.values()):
                there = commands.shut_down(project, key) or there
        except MachineError as error:
            raise WorthRetrying(str(error)) from None
        self.log.info("The cluster has ended" if there else "The cluster had ended before")


def key_of(context: Context) -> str:
    """Return the key of the DAG run's cluster."""
    return dag_run_key(context["ti"].dag_id, context["ti"].run_id)


def _backlogs(project: Project, pipelines: Sequence[str]) -> Backlogs:
    """Return the backlogs as a new preflight finds them: they may have grown since the first."""
    from drawdown.airflow.logins import look_up
    from drawdown.credentials import with_logins
    from drawdown.plan.preflight import preflight

    found = [load_pipeline(project, name) for name in pipelines]
    project = with_logins(project, look_up(project, found))
    with Workspace.open(project) as workspace:
        return [waiting_for(workspace, each, preflight(workspace, each).backlog) for each in found]


def _spark_connection(connection_id: str) -> SparkConnection:
    """Read a Spark connection. Raises SpecError ``airflow.no-connection``."""
    try:
        found = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise SpecError(
            "airflow.no-connection",
            f"the master is in the connection {connection_id!r}, which does not exist",
            where="include/project.yaml",
            do=f"airflow connections add {connection_id} --conn-type spark --conn-host ... --conn-port ...",
        ) from None
    return SparkConnection(
        connection_id, found.conn_type or "", found.host or "", found.port, found.extra_dejson
    )
