"""Jobs on a Dataproc cluster that is created for one run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow.providers.google.cloud.hooks.dataproc import DataprocHook
from airflow.providers.google.cloud.operators.dataproc import (
    DataprocCreateClusterOperator,
    DataprocDeleteClusterOperator,
    DataprocSubmitJobOperator,
)
from google.cloud.dataproc_v1 import ClusterConfig, Job

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import JobSpec, as_failures, ends
from drawdown.airflow.tasks.cluster import DOWN, LAST, UP, JobTasks
from drawdown.airflow.tasks.cluster_down import DOWN_AGAIN, TakesDown
from drawdown.launch.remote_requests.dataproc import cluster_config, job
from drawdown.launch.remote_requests.request import RUN_TAG
from drawdown.spec import DataprocCluster

if TYPE_CHECKING:
    from airflow.sdk import Context

_SIZE, _CLUSTER = "size", "cluster"


def tasks(work: JobSpec, profile: DataprocCluster, about: dict[str, Any]) -> JobTasks:
    """Return the tasks; each try creates a cluster of its own name, and the later tasks are told which."""
    service: dict[str, Any] = {
        "gcp_conn_id": profile.connection,
        "project_id": profile.project_id,
        "region": profile.region,
        "deferrable": False,
    }
    up = ClusterOperator(
        work=work,
        profile=profile,
        cluster_name="",
        cluster_config={},
        **service,
        **{**about, "task_id": UP, **LAST},
    )
    run = SubmitOperator(work=work, job={}, **service, **about)
    down = DeleteOperator(work=work, task_id=DOWN, cluster_name="", dag=about["dag"], **service, **DOWN_AGAIN)
    return JobTasks(run, up, down)


class ClusterOperator(DataprocCreateClusterOperator):
    """Creates the cluster of a run, sized by its backlog, after what an earlier try has left was deleted."""

    template_fields = ()

    def __init__(self, *, work: JobSpec, profile: DataprocCluster, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work
        self.profile = profile

    def execute(self, context: Context) -> dict[str, Any]:
        order = self.work.order(context)
        self.cluster_name, self.cluster_config = order.name, cluster_config(order, self.profile)
        self.labels = order.tags
        with as_failures(ValueError, TypeError):
            ClusterConfig(self.cluster_config)
        context["ti"].xcom_push(_SIZE, asdict(order.size))
        context["ti"].xcom_push(_CLUSTER, order.name)
        if context["ti"].try_number > 1:
            for name in filter(order.is_of_an_earlier_try, clusters_of(self, order.run_name)):
                self._delete(name)
        try:
            made: dict[str, Any] = super().execute(context)
        except Exception:
            # A lost answer may have created it, and without a successful setup there is no teardown.
            ends(self.on_kill)
            raise
        return made

    def on_kill(self) -> None:
        """Delete what this try has begun, and nothing else."""
        if self.cluster_name:
            self._delete(self.cluster_name)

    def _delete(self, name: str) -> None:
        hook = DataprocHook(gcp_conn_id=self.gcp_conn_id)
        hook.delete_cluster(project_id=self.project_id, region=self.region, cluster_name=name)


class SubmitOperator(DataprocSubmitJobOperator):
    """Runs a job and waits for it; it is cancelled when the task is killed."""

    template_fields = ()
    operator_extra_links = (RunRecordLink(), *DataprocSubmitJobOperator.operator_extra_links)

    def __init__(self, *, work: JobSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work

    def execute(self, context: Context) -> Any:
        pulled = {key: context["ti"].xcom_pull(task_ids=UP, key=key) for key in (_SIZE, _CLUSTER)}
        self.job = job(self.work.order(context, pulled[_SIZE]), pulled[_CLUSTER])
        with as_failures(ValueError, TypeError):
            Job(self.job)
        return super().execute(context)


class DeleteOperator(TakesDown, DataprocDeleteClusterOperator):
    """Ends the clusters of a run, of whichever try, and waits until they are gone."""

    template_fields = ()

    def __init__(self, *, work: JobSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work

    def execute(self, context: Context) -> None:
        for name in clusters_of(self, self.work.name(context)):
            self.cluster_name = name
            super().execute(context)


def clusters_of(service: ClusterOperator | DeleteOperator, run: str) -> list[str]:
    """Return the names of a run's clusters that are not being deleted already."""
    hook = DataprocHook(gcp_conn_id=service.gcp_conn_id)
    found = hook.list_clusters(
        region=service.region, project_id=service.project_id, filter_=f"labels.{RUN_TAG} = {run}"
    )
    return [each.cluster_name for each in found if each.status.state.name != "DELETING"]
