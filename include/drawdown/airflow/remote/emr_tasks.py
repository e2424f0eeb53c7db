"""Jobs on an EMR on EC2 cluster that is created for one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import ceil
from typing import TYPE_CHECKING, Any

from airflow.providers.amazon.aws.hooks.emr import EmrHook
from airflow.providers.amazon.aws.operators.emr import (
    EmrAddStepsOperator,
    EmrCreateJobFlowOperator,
    EmrTerminateJobFlowOperator,
)
from airflow.sdk.exceptions import AirflowFailException
from botocore.exceptions import ParamValidationError

from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.remote.remote_job import DELAY, JobSpec, as_failures, ends
from drawdown.airflow.tasks.cluster import DOWN, LAST, UP, JobTasks
from drawdown.airflow.tasks.cluster_down import DOWN_AGAIN, TakesDown
from drawdown.airflow.tasks.task_failures import WorthRetrying
from drawdown.errors import MachineError
from drawdown.launch.remote_requests.emr import LIVE, job_flow, step
from drawdown.launch.remote_requests.request import is_of_run
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
    down = TerminateOperator(
        work=work, task_id=DOWN, job_flow_id=up.output, dag=about["dag"], **service, **DOWN_AGAIN
    )
    return JobTasks(job, up, down)


class JobFlowOperator(EmrCreateJobFlowOperator):
    """Requests the cluster of a run, sized by its backlog. Returns its id, as XCom."""

    template_fields = ()
    # The stock operator sets it only once there is a cluster, but reads it when the task is killed.
    _job_flow_id: str | None = None
    _cluster_name = ""

    def __init__(self, *, work: JobSpec, profile: EmrCluster, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work
        self.profile = profile

    def execute(self, context: Context) -> Any:
        order = self.work.order(context)
        self.job_flow_overrides = job_flow(order, self.profile)
        context["ti"].xcom_push(_SIZE, asdict(order.size))
        self._cluster_name = order.name
        if context["ti"].try_number > 1:
            end_all(self.hook, order.is_of_an_earlier_try)
        try:
            with as_failures(ParamValidationError):
                return super().execute(context)
        except AirflowFailException:
            raise  # Nothing was sent.
        except Exception:
            # A lost answer may have created it, and without a successful setup there is no teardown.
            ends(self.on_kill)
            raise

    def on_kill(self) -> None:
        """End the cluster of this try alone, whose id is not known while it is being requested."""
        if self._cluster_name:
            end_all(self.hook, lambda name: name == self._cluster_name)


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
        try:
            with as_failures(ParamValidationError):
                return super().execute(context)
        except Exception as error:
            # A step that nobody waits for would run beside that of the next try.
            ends(self.on_kill)
            with as_failures():
                self._refuse_an_ended_cluster()
            if said := _said_of_step(error):
                raise WorthRetrying(f"{error}: {said}") from error
            raise

    def on_kill(self) -> None:
        """Cancel the steps: the cluster, and so its steps, belong to this run alone."""
        emr = self.hook.conn
        found = emr.list_steps(ClusterId=self.job_flow_id, StepStates=_UNDER_WAY)["Steps"]
        if found:
            emr.cancel_steps(ClusterId=self.job_flow_id, StepIds=[step["Id"] for step in found])

    def _refuse_an_ended_cluster(self) -> None:
        """Raise MachineError ``cluster.ended``: another try would ask the same cluster."""
        found: dict[str, Any] = {}
        ends(lambda: found.update(self.hook.conn.describe_cluster(ClusterId=self.job_flow_id)["Cluster"]))
        status = found.get("Status", {})
        if status.get("State", "").startswith("TERMINAT"):
            why = status.get("StateChangeReason", {})
            raise MachineError(
                "cluster.ended",
                f"the cluster ended before its job did ({why.get('Code', status['State'])}):"
                f" {why.get('Message') or 'the service gives no reason'}",
                where=f"EMR cluster {self.job_flow_id}",
                do="clear `cluster_up` of this DAG run to request a new cluster, or wait for the next run",
            )


class TerminateOperator(TakesDown, EmrTerminateJobFlowOperator):
    """Ends every cluster of a run, also one whose id was lost because the task that requested it was killed.

    The stock operator asks about the cluster before it ends it, and ends nothing if that fails.
    """

    template_fields = ("job_flow_id",)

    def __init__(self, *, work: JobSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.work = work

    def execute(self, context: Context) -> None:
        if self.job_flow_id:
            self.hook.conn.terminate_job_flows(JobFlowIds=[self.job_flow_id])
        run = self.work.name(context)
        end_all(self.hook, lambda name: is_of_run(name, run))


def end_all(hook: EmrHook, is_meant: Callable[[str], bool]) -> None:
    """End the clusters that still run and whose names are meant."""
    pages = hook.conn.get_paginator("list_clusters").paginate(ClusterStates=LIVE)
    found = [each["Id"] for page in pages for each in page["Clusters"] if is_meant(each["Name"])]
    if found:
        hook.log.info("Ending %s", found)
        hook.conn.terminate_job_flows(JobFlowIds=found)


def _said_of_step(error: Exception) -> str:
    """Return why a step has failed, which the provider only logs; empty for other errors."""
    answer = getattr(error, "last_response", None) or {}
    status = answer.get("Step", {}).get("Status", {})
    about = {**status.get("StateChangeReason", {}), **status.get("FailureDetails", {})}
    return " ".join(str(about[key]) for key in ("Reason", "Message", "LogFile") if about.get(key))
