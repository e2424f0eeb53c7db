"""Jobs as job runs of EMR Serverless."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from botocore.exceptions import ParamValidationError

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import DELAY, JobSpec, as_failures
from drawdown.airflow.tasks.cluster import JobTasks
from drawdown.launch.remote_requests.emr_serverless import configuration_overrides, job_driver
from drawdown.spec import EmrServerlessCluster

if TYPE_CHECKING:
    from airflow.sdk import Context


def tasks(work: JobSpec, profile: EmrServerlessCluster, about: dict[str, Any]) -> JobTasks:
    """Return one task: the application starts workers for a job run and stops them with it."""
    return JobTasks(
        JobRunOperator(
            work=work,
            application_id=profile.application,
            execution_role_arn=profile.role,
            job_driver={},
            configuration_overrides=configuration_overrides(profile),
            aws_conn_id=profile.connection,
            region_name=profile.region,
            waiter_delay=DELAY,
            waiter_max_attempts=ceil(about["execution_timeout"].total_seconds() / DELAY) + 1,
            deferrable=False,
            **about,
        )
    )


class JobRunOperator(EmrServerlessStartJobOperator):
    """Starts the job run of a job and waits for it; it is cancelled when the task is killed."""

    template_fields = ()
    operator_extra_links = (RunRecordLink(), *EmrServerlessStartJobOperator.operator_extra_links)

    def __init__(self, *, work: JobSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work

    def execute(self, context: Context, event: dict[str, Any] | None = None) -> Any:
        order = self.work.order(context)
        self.name, self.job_driver = order.name, job_driver(order)
        with as_failures(ParamValidationError):
            return super().execute(context, event)
