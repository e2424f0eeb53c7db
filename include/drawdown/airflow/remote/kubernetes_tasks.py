"""Jobs as SparkApplications of Kubernetes' Spark operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import JobSpec
from drawdown.airflow.tasks.cluster import JobTasks
from drawdown.launch.remote_requests.kubernetes import spark_application
from drawdown.spec import KubernetesCluster

if TYPE_CHECKING:
    from airflow.sdk import Context


def tasks(work: JobSpec, profile: KubernetesCluster, about: dict[str, Any]) -> JobTasks:
    """Return one task: the pods of an application are its cluster, and end with it."""
    return JobTasks(
        SparkApplicationOperator(
            work=work,
            profile=profile,
            namespace=profile.namespace,
            kubernetes_conn_id=profile.connection,
            deferrable=False,
            **about,
        )
    )


class SparkApplicationOperator(SparkKubernetesOperator):
    """Creates the SparkApplication of a job, follows its driver's log, and deletes it in any case."""

    template_fields = ()
    operator_extra_links = (RunRecordLink(),)

    def __init__(self, *, work: JobSpec, profile: KubernetesCluster, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work
        self.profile = profile

    def execute(self, context: Context) -> Any:
        order = self.work.order(context)
        self.name, self.template_spec = order.name, spark_application(order, self.profile)
        return super().execute(context)
