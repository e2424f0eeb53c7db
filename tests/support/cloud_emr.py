"""EMR: moto's server behind recorded answers, for ``tests.support.provider_runs``.

Moto creates clusters, lists them, keeps their tags and ends them. It runs no step and has no capacity to run
out of, so those answers are recorded ones: their shapes and codes are those of botocore's service model
(ClusterStateChangeReason, FailureDetails, the errors of each operation), their sentences are examples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

from drawdown.launch.remote_requests.request import is_of_run
from tests.support import cloud_emr_serverless
from tests.support.provider_runs import context, outcome
from tests.support.recorded_api import Answer, RecordedApi

REGION = "eu-central-1"
"""Of the example in docs/clusters.md."""

THROTTLED = Answer(400, {"__type": "ThrottlingException", "message": "Rate exceeded"})
FAILING = Answer(500, {"__type": "InternalServerException", "message": "An internal error occurred."})
LOST = Answer(500, FAILING.body, lost=True)
NONE_CANCELLED = Answer(200, {"CancelStepsInfoList": []})
SHUTTING_DOWN = Answer(
    400,
    {
        "__type": "ValidationException",
        "message": "A job flow that is shutting down, terminated, or finished may not be modified.",
    },
)
"""What AddJobFlowSteps says when the cluster has ended."""


def step_is(state: str, **details: str) -> Answer:
    status = {"State": state, "FailureDetails": details, "StateChangeReason": {}, "Timeline": {}}
    return Answer(200, {"Step": {"Id": "s-1", "Name": "x", "Status": status}})


def cluster_is(state: str, code: str = "", message: str = "") -> Answer:
    reason = {"Code": code, "Message": message} if code else {}
    status = {"State": state, "StateChangeReason": reason, "Timeline": {}}
    return Answer(200, {"Cluster": {"Id": "j-1", "Name": "x", "Status": status, "Tags": []}})


Do = Callable[["Tasks", RecordedApi], dict[str, str]]


class Tasks:
    """The tasks of one DAG run."""

    def __init__(self, dag: Any, run: str) -> None:
        self.up, self.job, self.down = (
            dag.get_task(each) for each in ("cluster_up", "replay", "cluster_down")
        )
        for task in (self.up, self.job, self.down):
            task.__dict__.pop("hook", None)
        self.up._job_flow_id, self.up._cluster_name = None, ""
        self.job.waiter_delay, self.job.waiter_max_attempts = 1, 3
        self.pushed: dict[str, Any] = {}
        self.run, self.tries = run, 0
        self.id: str | None = None

    def goes_up(self) -> str:
        def work() -> None:
            self.tries += 1
            self.id = self.up.execute(context(self.up, self.pushed, self.run, self.tries))

        return outcome(work)

    def works(self) -> str:
        self.job.job_flow_id = self.id
        return outcome(partial(self.job.execute, context(self.job, self.pushed, self.run)))

    def goes_down(self) -> str:
        self.down.job_flow_id = self.id
        return outcome(partial(self.down.execute, context(self.down, self.pushed, self.run)))

    def all(self) -> dict[str, str]:
        """As Airflow does: without a successful setup there is no teardown."""
        said = {"up": self.goes_up()}
        if said["up"] == "success":
            said |= {"job": self.works(), "down": self.goes_down()}
        return said


def answering(**answers: list[Answer]) -> Do:
    """Up, job and down, with these answers."""

    def work(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
        api.answers |= answers
        return tasks.all()

    return work


def ends_early(code: str, message: str, *before: str) -> Do:
    """The cluster ends by itself while its step waits or runs."""

    def work(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
        up = tasks.goes_up()
        api.answers["DescribeStep"] = [*map(step_is, before), step_is("CANCELLED")]
        api.answers["CancelSteps"] = [SHUTTING_DOWN]
        api.answers["DescribeCluster"] = [
            cluster_is("RUNNING"), cluster_is("TERMINATED_WITH_ERRORS", code, message)
        ]  # fmt: skip
        return {"up": up, "job": tasks.works(), "down": tasks.goes_down()}

    return work


def gone_before(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """The cluster of the first try has ended by itself before the second."""
    up = tasks.goes_up()
    api.answers["AddJobFlowSteps"] = [SHUTTING_DOWN]
    api.answers["DescribeCluster"] = [cluster_is("TERMINATED", "ALL_STEPS_COMPLETED", "Idle for 900 s")]
    return {"up": up, "job": tasks.works(), "down": tasks.goes_down()}


def killed_while_asking(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """SIGKILL right after the request: no task has the id, and `on_kill` does not run. Then another try."""
    tasks.goes_up()
    tasks.up._job_flow_id = tasks.id = None
    return {"second": tasks.goes_up(), "down": tasks.goes_down()}


def first_comes_back(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """The first try, on a host that was cut off, is told to end once the second try has a cluster."""
    tasks.goes_up()
    first, tasks.id = tasks.up._cluster_name, None
    second = tasks.goes_up()
    tasks.up._cluster_name, name = first, tasks.up._cluster_name
    kill = outcome(tasks.up.on_kill)
    tasks.up._cluster_name = name
    return {"second": second, "kill": kill, "left": running(api, tasks.id), "down": tasks.goes_down()}


def lost_id(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """The teardown has no id."""
    tasks.goes_up()
    tasks.id = None
    return {"down": tasks.goes_down()}


def killed_by_a_signal(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """SIGTERM while the answer to RunJobFlow is on its way: `on_kill` runs without an id."""
    tasks.goes_up()
    tasks.up._job_flow_id = None
    return {"kill": outcome(tasks.up.on_kill)}


def out_of_time(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """The provider waits for ever while it is throttled; Airflow's runner ends the task in this way."""
    from airflow.sdk.exceptions import AirflowTaskTimeout
    from airflow.sdk.execution_time.timeout import TimeoutPosix

    up = tasks.goes_up()
    api.answers |= {"DescribeStep": [THROTTLED], "CancelSteps": [NONE_CANCELLED]}
    kill = ""
    try:
        with TimeoutPosix(4):
            tasks.works()
    except AirflowTaskTimeout:
        kill = outcome(tasks.job.on_kill)
    return {"up": up, "kill": kill, "down": tasks.goes_down()}


def down_again(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """The request that ends the cluster is throttled until the task is tried again."""
    up = tasks.goes_up()
    api.answers["TerminateJobFlows"] = [THROTTLED]
    first = tasks.goes_down()
    del api.answers["TerminateJobFlows"]
    return {"up": up, "first": first, "tries": str(1 + tasks.down.retries), "down": tasks.goes_down()}


def down_cannot_ask(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    up = tasks.goes_up()
    api.answers["DescribeCluster"] = [THROTTLED]
    return {"up": up, "down": tasks.goes_down()}


def of_another_project(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """A cluster of another project's run with the same DAG and run id stays."""
    from dataclasses import replace

    up = tasks.goes_up()
    work = tasks.down.work
    try:
        tasks.down.work, theirs = replace(work, storage="s3://other/drawdown"), tasks.id
        tasks.id = None
        down = tasks.goes_down()
    finally:
        tasks.down.work = work
    left = running(api, theirs)
    return {"up": up, "down": down, "left": left, "own": tasks.goes_down()}


def running(api: RecordedApi, cluster: str | None) -> str:
    state: str = client(str(api.behind)).describe_cluster(ClusterId=cluster)["Cluster"]["Status"]["State"]
    return state


def left_behind(tasks: Tasks, api: RecordedApi) -> dict[str, str]:
    """Its machine died, and the deadline has passed: for `drawdown doctor`."""
    up = tasks.goes_up()
    tags = [{"Key": "drawdown-deadline", "Value": "20240501t000000z"}]
    client(str(api.behind)).add_tags(ResourceId=tasks.id, Tags=tags)
    return {"up": up, "id": str(tasks.id)}


EMR: dict[str, Do] = {
    "runs": answering(DescribeStep=[step_is("PENDING"), step_is("RUNNING"), step_is("COMPLETED")]),
    "step_fails": answering(
        DescribeStep=[step_is("RUNNING"), step_is("FAILED", Reason="Unknown Error.", Message="exit code 1")],
        CancelSteps=[NONE_CANCELLED],
    ),
    "throttled": answering(
        RunJobFlow=[THROTTLED, Answer(200, {}, passed=True)], DescribeStep=[step_is("COMPLETED")]
    ),
    "throttled_throughout": answering(RunJobFlow=[THROTTLED]),
    "answer_lost": answering(RunJobFlow=[LOST]),
    "asked_in_vain": answering(DescribeCluster=[THROTTLED]),
    "no_capacity": ends_early(
        "VALIDATION_ERROR", "EC2 is out of capacity for m7g.xlarge in the requested subnet", "PENDING"
    ),
    "bootstrap_fails": ends_early(
        "BOOTSTRAP_FAILURE", "On the master instance, bootstrap action 1 returned a non-zero return code",
        "PENDING",
    ),
    "spot_reclaimed": ends_early(
        "INSTANCE_FAILURE", "All core instances were terminated: Spot capacity was reclaimed", "RUNNING"
    ),
    "cluster_gone": gone_before,
    "wait_times_out": answering(DescribeStep=[step_is("RUNNING")], CancelSteps=[NONE_CANCELLED]),
    "throttled_while_waiting": out_of_time,
    "down_cannot_ask": down_cannot_ask,
    "down_throttled": down_again,
    "sigkill": killed_while_asking,
    "first_comes_back": first_comes_back,
    "lost_id": lost_id,
    "sigterm": killed_by_a_signal,
    "of_another_project": of_another_project,
    "left_behind": left_behind,
}  # fmt: skip


def client(endpoint: str) -> Any:
    import boto3

    return boto3.client("emr", endpoint_url=endpoint, region_name=REGION)


def scenarios(dags: dict[str, Any], moto: str) -> Iterator[tuple[str, Any]]:
    from airflow.providers.amazon.aws.utils import waiter_with_logging

    # The time between two questions, and nothing else.
    waiter_with_logging.time = SimpleNamespace(sleep=lambda _: None)
    for name, work in EMR.items():
        yield name, emr(name, dags["emr__replay"], moto, work)
    yield from cloud_emr_serverless.scenarios(dags, moto)


def emr(name: str, dag: Any, moto: str, work: Do) -> dict[str, Any]:
    with RecordedApi(moto) as api:
        os.environ["AWS_ENDPOINT_URL"] = api.endpoint
        tasks = Tasks(dag, f"manual__{name}")
        said = work(tasks, api)
        asked = list(api.calls)
    emr = client(moto)
    ours = tasks.up.work.name(context(tasks.up, {}, tasks.run))
    found = [each["Id"] for each in emr.list_clusters()["Clusters"] if is_of_run(each["Name"], ours)]
    clusters = [emr.describe_cluster(ClusterId=each)["Cluster"] for each in found]
    return {
        **said,
        "calls": asked,
        "states": [each["Status"]["State"] for each in clusters],
        "tags": [{tag["Key"]: tag["Value"] for tag in each["Tags"]} for each in clusters],
    }
