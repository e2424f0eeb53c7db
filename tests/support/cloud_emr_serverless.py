"""EMR Serverless: moto's server behind recorded answers, as ``tests.support.cloud_emr``.

Moto starts job runs, keeps their tags and cancels them, but each of them has succeeded at once. ``Service``
lets them run until a scenario says how they end, or until they are cancelled.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from drawdown.airflow.remote.leftovers import main
from tests.support.provider_runs import context, outcome
from tests.support.recorded_api import Answer, RecordedApi

REGION = "eu-west-1"
"""Of the variable AWS_DEFAULT_REGION: the example in docs/clusters.md names none."""

EXAMPLE = "00fexample0abcdef"
"""The application of that example: moto takes no id."""

THROTTLED = Answer(429, {"__type": "ThrottlingException", "message": "Rate exceeded"})
QUOTA = Answer(402, {"__type": "ServiceQuotaExceededException", "message": "maximum vCPUs reached"})
LOST = Answer(500, {"__type": "InternalServerException", "message": "An internal error occurred."}, lost=True)
FAILED = "Job failed, please check complete logs in configured logging destination. ExitCode: 1."
NO_CAPACITY = "Worker could not be allocated as the application has exceeded maximumCapacity settings"


class Service(RecordedApi):
    """Moto's job runs, which it says have succeeded, in the state that the scenario says.

    Attributes:
        application: which moto has made; the example's id means it, too.
        goes: states and details, one for each question; the last one stays.
    """

    application: str
    goes: list[tuple[str, str]]

    def said(self, operation: str, request: Any, body: bytes) -> tuple[int, bytes]:
        method, path, headers = request
        path = path.replace(EXAMPLE, self.application)
        operation = operation.replace(EXAMPLE, self.application)
        listing = re.fullmatch(r"GET /applications/[^/]+/jobruns", operation)
        if listing:
            path = urlsplit(path).path
        status, said = super().said(operation, (method, path, headers), body)
        if listing and b"does not exist" in said:
            # Moto does not know that an application may have no job run yet.
            return 200, b'{"jobRuns": []}'
        answer = json.loads(said or b"{}")
        if listing and status == 200:
            wanted = parse_qs(urlsplit(request[1]).query).get("states", [])
            runs = [run | {"state": self._state(run["state"])} for run in answer["jobRuns"]]
            return status, json.dumps({"jobRuns": [run for run in runs if run["state"] in wanted]}).encode()
        if method == "GET" and "jobRun" in answer and answer["jobRun"]["state"] == "SUCCESS":
            state, details = self.goes.pop(0) if len(self.goes) > 1 else self.goes[0]
            answer["jobRun"] |= {"state": state, "stateDetails": details}
            return status, json.dumps(answer).encode()
        return status, said

    def _state(self, of_moto: str) -> str:
        return self.goes[0][0] if of_moto == "SUCCESS" else of_moto


class Task:
    """The one task of a DAG run."""

    def __init__(self, dag: Any, application: str, run: str) -> None:
        self.job = dag.get_task("replay")
        self.job.__dict__.pop("hook", None)
        self.job.application_id, self.job.job_id, self.job.name = application, None, None
        self.job.execution_role_arn = "arn:aws:iam::123456789012:role/drawdown"
        self.job.waiter_delay, self.job.waiter_max_attempts = 1, 3
        self.run, self.tries = run, 0

    def works(self) -> str:
        self.tries += 1
        return outcome(partial(self.job.execute, context(self.job, {}, self.run, self.tries)))


Do = Callable[[Task, Service], dict[str, Any]]


def goes(*states: tuple[str, str], **answers: list[Answer]) -> Do:
    """The job run goes through these states; ``answers``: by the name of an operation."""

    def work(task: Task, api: Service) -> dict[str, str]:
        api.goes = list(states)
        path = f"/applications/{task.job.application_id}/jobruns"
        api.answers |= {f"POST {path}" if name == "start" else name: each for name, each in answers.items()}
        return {"job": task.works()}

    return work


def out_of_time(task: Task, api: Service) -> dict[str, str]:
    """The service does not answer for as long as Airflow allows, and then does."""
    from airflow.sdk.exceptions import AirflowTaskTimeout
    from airflow.sdk.execution_time.timeout import TimeoutPosix

    api.goes = [("RUNNING", "")]
    asks = re.compile(r"GET /applications/[^/]+/jobruns/[^/]+")

    class Throttling(dict[str, list[Answer]]):
        def get(self, operation: str, _: Any = None) -> Any:
            return [THROTTLED] if asks.fullmatch(operation) else None

    api.answers = Throttling()
    try:
        with TimeoutPosix(4):
            task.works()
    except AirflowTaskTimeout:
        return {"kill": outcome(task.job.on_kill)}
    return {"kill": ""}


def killed(task: Task, api: Service) -> dict[str, Any]:
    """SIGTERM while the answer to StartJobRun is on its way: `on_kill` runs without an id."""
    api.goes = [("SUCCESS", "")]
    task.works()
    api.goes, task.job.job_id = [("RUNNING", "")], None
    named = [asdict(each) for each in main(Path(task.job.work.project_root), ["emr_serverless"])]
    return {"named": named, "kill": outcome(task.job.on_kill)}


def tried_again(task: Task, api: Service) -> dict[str, str]:
    """SIGKILL, then another try: the job run of the first is cancelled before there is a second."""
    api.goes = [("SUCCESS", "")]
    task.works()
    api.goes, task.job.job_id = [("RUNNING", ""), ("RUNNING", ""), ("SUCCESS", "")], None
    return {"second": task.works()}


SERVERLESS: dict[str, Do] = {
    "runs": goes(("SCHEDULED", ""), ("RUNNING", ""), ("SUCCESS", "")),
    "fails": goes(("RUNNING", ""), ("FAILED", FAILED)),
    "no_capacity": goes(("PENDING", ""), ("FAILED", NO_CAPACITY)),
    "quota": goes(("RUNNING", ""), start=[QUOTA]),
    "throttled_throughout": goes(("RUNNING", ""), start=[THROTTLED]),
    "answer_lost": goes(("RUNNING", ""), start=[LOST]),
    "times_out": goes(("RUNNING", "")),
    "throttled_while_waiting": out_of_time,
    "killed": killed,
    "tried_again": tried_again,
}


def scenarios(dags: dict[str, Any], moto: str) -> Iterator[tuple[str, Any]]:
    import boto3

    client = boto3.client("emr-serverless", endpoint_url=moto, region_name=REGION)
    for name, work in SERVERLESS.items():
        made = client.create_application(name=name, releaseLabel="emr-6.6.0", type="SPARK", clientToken=name)
        application = made["applicationId"]
        with Service(moto) as api:
            os.environ["AWS_ENDPOINT_URL"] = api.endpoint
            api.application = application
            task = Task(dags["emr_serverless__replay"], application, f"manual__{name}")
            said = work(task, api)
            asked = [each.replace(application, "ID") for each in api.calls]
        yield f"serverless_{name}", {**said, "calls": asked, "runs": list(job_runs(client, application))}


def job_runs(client: Any, application: str) -> Iterator[dict[str, Any]]:
    """What moto knows in the end."""
    try:
        found = client.list_job_runs(applicationId=application)["jobRuns"]
    except client.exceptions.ResourceNotFoundException:
        return
    for each in found:
        about = client.get_job_run(applicationId=application, jobRunId=each["id"])["jobRun"]
        yield {"state": about["state"], "tags": about.get("tags"), "within": about["executionTimeoutMinutes"]}
