"""Jobs as SparkApplications of Kubernetes' Spark operator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import JobSpec, ends
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
        # The stock operator adds a random part for each try, so this name is never ended for another's.
        self.name, self.template_spec = order.run_name, spark_application(order, self.profile)
        try:
            return super().execute(context)
        except Exception:
            # The stock operator deletes only once there has been a driver.
            if "launcher" in vars(self):
                ends(partial(self.launcher.delete_spark_job, self.name))
            raise

    def on_kill(self) -> None:
        """Delete the application, if there is one yet."""
        if "launcher" in vars(self):
            super().on_kill()
