"""Jobs on an EMR on EC2 cluster that is created for one run."""

from __future__ import annotations

from dataclasses import asdict
from math import ceil
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrCreateJobFlowOperator,
    EmrTerminateJobFlowOperator,
)
from botocore.exceptions import ParamValidationError

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import DELAY, JobSpec, as_failures
from drawdown.airflow.tasks.cluster import DOWN, LAST, UP, JobTasks
from drawdown.airflow.tasks.cluster_down import TakesDown
from drawdown.launch.remote_requests.emr import job_flow, step
from drawdown.spec import EmrCluster

if TYPE_CHECKING:
    from airflow.sdk import Context

_SIZE = "size"
_UNDER_WAY = ["PENDING", "RUNNING"]


def tasks(work: JobSpec, profile: EmrCluster, about: dict[str, Any]) -> JobTasks:
    """Return the tasks; the first does not wait for the cluster, so that a known id can be ended."""
    service: dict[str, Any] = {
        "aws_conn_id": profile.connection,
        "region_name": profile.region,
        "deferrable": False,
    }
    up = JobFlowOperator(
        work=work,
        profile=profile,
        emr_conn_id=None,
        **service,
        **{**about, "task_id": UP, **LAST},
    )
    job = StepOperator(
        work=work,
        job_flow_id=up.output,
        wait_for_completion=True,
        waiter_delay=DELAY,
        waiter_max_attempts=ceil(about["execution_timeout"].total_seconds() / DELAY) + 1,
        **service,
        **about,
    )
    down = TerminateOperator(task_id=DOWN, job_flow_id=up.output, dag=about["dag"], **service)
    return JobTasks(job, up, down)


class JobFlowOperator(EmrCreateJobFlowOperator):
    """Requests the cluster of a run, sized by its backlog. Returns its id, as XCom."""

    template_fields = ()
    # The stock operator sets it only once there is a cluster, but reads it when the task is killed.
    _job_flow_id: str | None = None

    def __init__(self, *, work: JobSpec, profile: EmrCluster, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work
        self.profile = profile

    def execute(self, context: Context) -> Any:
        order = self.work.order(context)
        self.job_flow_overrides = job_flow(order, self.profile)
        context["ti"].xcom_push(_SIZE, asdict(order.size))
        with as_failures(ParamValidationError):
            return super().execute(context)


class StepOperator(EmrAddStepsOperator):
    """Runs a job as a step and waits for it. The stock operator leaves the step running when it is killed."""

    template_fields = ("job_flow_id",)
    operator_extra_links = (RunRecordLink(), *EmrAddStepsOperator.operator_extra_links)

    def __init__(self, *, work: JobSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work

    def execute(self, context: Context) -> Any:
        order = self.work.order(context, context["ti"].xcom_pull(task_ids=UP, key=_SIZE))
        self.steps = [step(order)]
        with as_failures(ParamValidationError):
            return super().execute(context)

    def on_kill(self) -> None:
        """Cancel the steps: the cluster, and so its steps, belong to this run alone."""
        emr = self.hook.conn
        found = emr.list_steps(ClusterId=self.job_flow_id, StepStates=_UNDER_WAY)["Steps"]
        if found:
            emr.cancel_steps(ClusterId=self.job_flow_id, StepIds=[step["Id"] for step in found])


class TerminateOperator(TakesDown, EmrTerminateJobFlowOperator):
    """Ends the cluster of a run."""

    template_fields = ("job_flow_id",)
