"""The providers' own operators, executed: whatever fails, nothing is left running in the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dev.test_programs import PROVIDERS
from drawdown.launch.remote_requests.request import deadline_of
from tests.airflow.test_remote_clusters import make, replayed
from tests.support.dag_project import ROOT
from tests.support.spark_operator import problems

pytestmark = pytest.mark.timeout(900)


def executed(root: Path, service: str) -> Any:
    """What tests/support/cloud_SERVICE.py says of its scenarios."""
    project = make(root / "project")
    for kind in ("kubernetes", "emr_serverless", "emr", "dataproc"):
        replayed(project, kind, kind)
    environment = {
        "AIRFLOW_HOME": str(root / "airflow"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": "google-cloud-platform://?project=example",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'include'}",
    }
    command = [sys.executable, "-m", "tests.support.provider_runs", service, str(PROVIDERS)]
    done = subprocess.run(
        [*command, str(project.root)],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def of_kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(tmp_path_factory.mktemp("kubernetes"), "kubernetes")


@pytest.fixture(scope="module")
def of_google(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(tmp_path_factory.mktemp("google"), "dataproc")


def test_every_dataproc_cluster_is_deleted_and_labelled(of_google: Any) -> None:
    assert {name: each["left"] for name, each in of_google.items() if each["left"]} == {}
    assert (of_google["runs"]["up"], of_google["runs"]["job"], of_google["runs"]["down"]) == ("success",) * 3
    assert len(of_google["runs"]["left_before"]) == 1
    assert "SystemExit: 1" in of_google["job_fails"]["job"] or "failed" in of_google["job_fails"]["job"]
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in of_google["no_capacity"]["up"]
    assert "quota" in of_google["quota"]["up"]
    assert "Not found" in of_google["cluster_gone"]["job"]
    assert of_google["tried_again"]["second"] == "success"
    [labels] = of_google["runs"]["labels"]
    assert deadline_of(labels["drawdown-deadline"]) is not None


@pytest.mark.capability("HOST-11")
def test_every_spark_application_is_deleted(of_kubernetes: Any) -> None:
    assert {name: each["left"] for name, each in of_kubernetes.items() if each["left"]} == {}
    assert of_kubernetes["runs"]["job"] == "success"
    assert "returned a failure" in of_kubernetes["driver_fails"]["job"]
    assert "driver container failed" in of_kubernetes["application_fails"]["job"]
    assert "exceeded quota" in of_kubernetes["quota"]["job"]
    assert of_kubernetes["killed"]["job"] == "killed"
    for each in of_kubernetes.values():
        assert any(call.startswith("DELETE") for call in each["calls"])


@pytest.mark.full
@pytest.mark.capability("HOST-11")
def test_a_spark_application_fits_the_operators_definition(of_kubernetes: Any) -> None:
    """But for `spec.labels`, which the provider's operator adds and Kubernetes drops."""
    [body] = of_kubernetes["runs"]["bodies"]
    assert [each for each in problems(body) if "'labels' was unexpected" not in each] == []
    body["spec"]["driver"]["memoryy"] = "1g"
    assert any("memoryy" in each for each in problems(body))
