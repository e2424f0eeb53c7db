"""A Kubernetes API of recorded answers for SparkApplications, for ``tests.support.provider_runs``.

The answers have the shapes of the objects of the API (Status, Pod: the models of the package kubernetes;
SparkApplication: the definition of the Spark operator). A request body is kept, so that a test can hold it
against that definition.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from drawdown.airflow.remote.leftovers import main
from tests.support.provider_runs import context, outcome
from tests.support.recorded_api import RecordedApi

APPLICATIONS = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/data/sparkapplications"
PODS = "/api/v1/namespaces/data/pods"


def refusal(status: int, reason: str, message: str) -> tuple[int, bytes]:
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason,
            "message": message}  # fmt: skip
    return status, json.dumps(said).encode()


class Cluster:
    """One namespace: what was created, and how it fares.

    Attributes:
        fails: state of the application once it was asked about: "", SUBMISSION_FAILED or FAILED.
        code: exit code of the driver's container.
        refuses: the refusal of a creation.
    """

    def __init__(
        self, state: str = "RUNNING", code: int = 0, refuses: tuple[int, bytes] | None = None
    ) -> None:
        self.state, self.code, self.refuses = state, code, refuses
        self.bodies: list[dict[str, Any]] = []
        self.left: dict[str, dict[str, Any]] = {}
        self.reasons: list[str] = []

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, bytes]:
        path = urlsplit(target).path
        if method == "POST" and path == APPLICATIONS:
            if self.refuses is not None:
                return self.refuses
            made = json.loads(body)
            self.bodies.append(made)
            self.left[made["metadata"]["name"]] = made
            return 201, json.dumps(made).encode()
        if path == APPLICATIONS:
            [label] = parse_qs(urlsplit(target).query)["labelSelector"]
            items = [each for each in self.left.values() if label in each["metadata"]["labels"]]
            return 200, json.dumps({"kind": "SparkApplicationList", "items": items}).encode()
        if found := re.fullmatch(rf"{APPLICATIONS}/([^/]+)(/status)?", path):
            return self._application(method, found[1])
        if path == PODS:
            return 200, json.dumps({"kind": "PodList", "apiVersion": "v1", "items": []}).encode()
        if path.startswith(PODS) and path.endswith("/log"):
            return 200, b"2024-05-01T00:00:00Z a line of the driver\n"
        if path.startswith(PODS):
            return 200, json.dumps(self._pod(path.split("/")[6])).encode()
        if path.endswith("/events"):
            return 200, json.dumps({"kind": "EventList", "apiVersion": "v1", "items": []}).encode()
        return refusal(404, "NotFound", f"{path} not found")

    def _application(self, method: str, name: str) -> tuple[int, bytes]:
        if name not in self.left:
            return refusal(404, "NotFound", f'sparkapplications "{name}" not found')
        if method == "DELETE":
            del self.left[name]
            return 200, b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'
        state = {"state": self.state, "errorMessage": "driver container failed with ExitCode: 1"}
        return 200, json.dumps({**self.left[name], "status": {"applicationState": state}}).encode()

    def _pod(self, name: str) -> dict[str, Any]:
        ended = {"exitCode": self.code, "reason": "Error" if self.code else "Completed",
                 "finishedAt": "2024-05-01T00:00:01Z", "startedAt": "2024-05-01T00:00:00Z"}  # fmt: skip
        container = {"name": "spark-kubernetes-driver", "image": "i", "imageID": "i", "ready": False,
                     "restartCount": 0, "state": {"terminated": ended}}  # fmt: skip
        return {
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": "data", "labels": {}},
            "spec": {"containers": [{"name": "spark-kubernetes-driver", "image": "i"}]},
            "status": {"phase": "Failed" if self.code else "Succeeded", "containerStatuses": [container]},
        }  # fmt: skip


QUOTA = refusal(403, "Forbidden", 'sparkapplications "x" is forbidden: exceeded quota: compute')
SCENARIOS = {
    "runs": lambda: Cluster(),
    "driver_fails": lambda: Cluster(code=1),
    "application_fails": lambda: Cluster(state="FAILED"),
    "quota": lambda: Cluster(refuses=QUOTA),
    "killed": lambda: Cluster(state="SUBMITTED"),
}


def scenarios(dags: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    from airflow.providers.cncf.kubernetes.operators import custom_object_launcher

    task = dags["kubernetes__replay"].get_task("replay")
    waited: list[float] = []
    named: list[dict[str, Any]] = []

    class Killed(BaseException):
        """Stands for the signal: from here on the operator does nothing of itself."""

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) > 3:
            named[:] = [asdict(each) for each in main(Path(task.work.project_root), ["kubernetes"])]
            task.on_kill()
            raise Killed

    custom_object_launcher.time = type("Time", (), {"sleep": staticmethod(sleep)})
    for name, make in SCENARIOS.items():
        cluster = make()
        waited.clear()
        for cached in ("hook", "client", "custom_obj_api", "launcher", "pod_manager"):
            task.__dict__.pop(cached, None)
        task.pod = task.pod_request_obj = None
        with RecordedApi(own=cluster.answer) as api:
            config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                      "clusters": [{"name": "c", "cluster": {"server": api.endpoint}}],
                      "users": [{"name": "u", "user": {}}],
                      "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}  # fmt: skip
            connection = {"conn_type": "kubernetes", "extra": {"kube_config": json.dumps(config)}}
            os.environ["AIRFLOW_CONN_KUBERNETES_DEFAULT"] = json.dumps(connection)
            try:
                said = outcome(lambda: task.execute(context(task, {}, f"manual__{name}")))  # noqa: B023
            except Killed:
                said = "killed"
        yield name, {"job": said, "calls": api.calls, "bodies": cluster.bodies, "left": list(cluster.left),
                     "named": [*named]}  # fmt: skip
