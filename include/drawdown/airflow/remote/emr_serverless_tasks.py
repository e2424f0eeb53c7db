"""Jobs as job runs of EMR Serverless."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from airflow.sdk.exceptions import AirflowFailException
from botocore.exceptions import ParamValidationError

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import DELAY, JobSpec, as_failures, ends
from drawdown.airflow.tasks.cluster import JobTasks
from drawdown.airflow.tasks.task_failures import WorthRetrying
from drawdown.launch.remote_requests.emr_serverless import (
    LIVE,
    about_run,
    configuration_overrides,
    job_driver,
)
from drawdown.spec import EmrServerlessCluster

if TYPE_CHECKING:
    from airflow.sdk import Context

_ENDED = ("FAILED", "CANCELLED")


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
    """Starts the job run of a job and waits for it; it is cancelled when the task fails or is killed."""

    template_fields = ()
    operator_extra_links = (RunRecordLink(), *EmrServerlessStartJobOperator.operator_extra_links)

    def __init__(self, *, work: JobSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work

    def execute(self, context: Context, event: dict[str, Any] | None = None) -> Any:
        order = self.work.order(context)
        self.name, self.job_driver, self.config = order.name, job_driver(order), about_run(order)
        if context["ti"].try_number > 1:
            self._cancel_all(order.is_of_an_earlier_try)
        try:
            with as_failures(ParamValidationError):
                return super().execute(context, event)
        except AirflowFailException:
            raise  # Nothing was sent.
        except Exception as error:
            run = (getattr(error, "last_response", None) or {}).get("jobRun", {})
            # The stock operator cancels only when the time is over, not when it could not ask any more.
            if run.get("state") not in _ENDED:
                ends(self.on_kill)
            if said := run.get("stateDetails"):
                raise WorthRetrying(f"{error}: {said}") from error
            raise

    def on_kill(self) -> None:
        """Cancel the job run of this try alone, whose id is not known while it is being requested."""
        try:
            super().on_kill()
        finally:
            if self.name:
                self._cancel_all(lambda name: name == self.name)

    def _cancel_all(self, is_meant: Callable[[str], bool]) -> None:
        """Cancel the job runs whose names are meant."""
        serverless = self.hook.conn
        pages = serverless.get_paginator("list_job_runs").paginate(
            applicationId=self.application_id, states=LIVE
        )
        for run in [run for page in pages for run in page["jobRuns"] if is_meant(str(run.get("name")))]:
            self.log.info("Cancelling %s", run["id"])
            serverless.cancel_job_run(applicationId=self.application_id, jobRunId=run["id"])
