"""A program: name by its tags what earlier runs have created in the services and nothing has ended yet.

    python -m drawdown.airflow.remote.leftovers PROJECT PROFILE...

For `drawdown doctor`, in a process of its own: importing a provider takes seconds, and Airflow shows the
connections of its database only to processes that say that they are its servers. The last line of standard
output is a JSON list of ``ServiceAnswer``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from drawdown.launch.remote_requests.emr import LIVE as LIVE_CLUSTERS
from drawdown.launch.remote_requests.emr_serverless import LIVE as LIVE_RUNS
from drawdown.launch.remote_requests.request import DEADLINE_TAG, RUN_TAG
from drawdown.spec import (
    DataprocCluster,
    EmrCluster,
    EmrServerlessCluster,
    KubernetesCluster,
    load_project,
)

_OURS = "drawdown-"
_WITHIN = 10
"""Seconds for one question; there is one more try."""


@dataclass(frozen=True)
class Tagged:
    """Something of a service that runs and carries our tags.

    Attributes:
        run: the run's name, as ``request.name_of`` makes it.
        deadline: the tag's text.
        end: the command that ends it.
    """

    what: str
    run: str
    deadline: str
    end: str


@dataclass(frozen=True)
class ServiceAnswer:
    """What a profile's service says.

    Attributes:
        failed: why it could not be asked; empty if it could.
    """

    profile: str
    found: list[Tagged]
    failed: str = ""


def main(root: Path, profiles: Sequence[str]) -> list[ServiceAnswer]:
    """Ask the services of these profiles of a project."""
    clusters = load_project(root).clusters
    return [_asked(name, clusters[name]) for name in profiles]


def _asked(name: str, profile: object) -> ServiceAnswer:
    try:
        return ServiceAnswer(name, list(_KINDS[type(profile)](profile)))
    except Exception as error:  # noqa: BLE001  the services' libraries have no error in common
        said = str(error).strip() or type(error).__name__
        return ServiceAnswer(name, [], said.splitlines()[0])


def _tagged(what: str, tags: dict[str, str], end: str) -> Iterator[Tagged]:
    if RUN_TAG in tags:
        yield Tagged(what, tags[RUN_TAG], tags.get(DEADLINE_TAG, ""), end)


def _aws(hook: str, profile: EmrCluster | EmrServerlessCluster) -> tuple[Any, str]:
    """Return a client, and the command's words for its region."""
    from botocore.config import Config

    hooks = import_module("airflow.providers.amazon.aws.hooks.emr")
    config = Config(connect_timeout=_WITHIN, read_timeout=_WITHIN, retries={"max_attempts": 1})
    made = getattr(hooks, hook)(aws_conn_id=profile.connection, region_name=profile.region, config=config)
    return made.get_conn(), f"--region {made.conn_region_name}"


def _emr(profile: EmrCluster) -> Iterator[Tagged]:
    client, region = _aws("EmrHook", profile)
    for page in client.get_paginator("list_clusters").paginate(ClusterStates=LIVE_CLUSTERS):
        for each in page["Clusters"]:
            # Asking for tags is a request for each cluster, and other clusters of the account may be many.
            if each["Name"].startswith(_OURS):
                about = client.describe_cluster(ClusterId=each["Id"])["Cluster"]
                tags = {tag["Key"]: tag["Value"] for tag in about.get("Tags", ())}
                end = f"aws emr terminate-clusters {region} --cluster-ids {each['Id']}"
                yield from _tagged(f"EMR cluster {each['Id']}", tags, end)


def _emr_serverless(profile: EmrServerlessCluster) -> Iterator[Tagged]:
    client, region = _aws("EmrServerlessHook", profile)
    application = profile.application
    for page in client.get_paginator("list_job_runs").paginate(applicationId=application, states=LIVE_RUNS):
        for each in page["jobRuns"]:
            if str(each.get("name")).startswith(_OURS):
                about = client.get_job_run(applicationId=application, jobRunId=each["id"])["jobRun"]
                end = f"aws emr-serverless cancel-job-run {region} --application-id {application}"
                end = f"{end} --job-run-id {each['id']}"
                yield from _tagged(f"EMR Serverless job run {each['id']}", about.get("tags") or {}, end)


def _dataproc(profile: DataprocCluster) -> Iterator[Tagged]:
    hooks = import_module("airflow.providers.google.cloud.hooks.dataproc")
    hook = hooks.DataprocHook(gcp_conn_id=profile.connection)
    about = {"region": profile.region, "project_id": profile.project_id, "timeout": _WITHIN}
    for each in hook.list_clusters(filter_=f"labels.{RUN_TAG} = *", page_size=100, **about):
        end = f"gcloud dataproc clusters delete {each.cluster_name} --project={profile.project_id}"
        named = f"Dataproc cluster {each.cluster_name}"
        yield from _tagged(named, dict(each.labels), f"{end} --region={profile.region}")


def _kubernetes(profile: KubernetesCluster) -> Iterator[Tagged]:
    hooks = import_module("airflow.providers.cncf.kubernetes.hooks.kubernetes")
    objects = hooks.KubernetesHook(conn_id=profile.connection).custom_object_client
    found = objects.list_namespaced_custom_object(
        "sparkoperator.k8s.io",
        "v1beta2",
        profile.namespace,
        "sparkapplications",
        label_selector=RUN_TAG,
        _request_timeout=_WITHIN,
    )
    for each in found["items"]:
        name = each["metadata"]["name"]
        end = f"kubectl delete sparkapplication {name} --namespace {profile.namespace}"
        yield from _tagged(f"SparkApplication {name}", each["metadata"].get("labels", {}), end)


_KINDS: dict[type[object], Callable[[Any], Iterator[Tagged]]] = {
    DataprocCluster: _dataproc,
    EmrCluster: _emr,
    EmrServerlessCluster: _emr_serverless,
    KubernetesCluster: _kubernetes,
}


if __name__ == "__main__":
    print(json.dumps([asdict(each) for each in main(Path(sys.argv[1]), sys.argv[2:])]), flush=True)
