"""The providers' own operators, executed: whatever fails, nothing is left running in the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dev.test_programs import PROVIDERS
from drawdown.cli.doctor.remote_leftovers import remote_clusters
from drawdown.launch.remote_requests.request import deadline_of
from drawdown.metastore import Metastore
from drawdown.spec import load_project
from tests.airflow.test_remote_clusters import make, replayed
from tests.support.dag_project import ROOT
from tests.support.s3_servers import Moto
from tests.support.spark_operator import problems

pytestmark = pytest.mark.timeout(900)

AWS = {
    "AIRFLOW_CONN_AWS_DEFAULT": "aws://key:word@/",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "word",
    "AWS_DEFAULT_REGION": "eu-west-1",
    "AWS_MAX_ATTEMPTS": "2",
}


def executed(root: Path, service: str, *server: str, kinds: tuple[str, ...]) -> Any:
    """What tests/support/cloud_SERVICE.py says of its scenarios."""
    project = make(root / "project")
    for kind in kinds:
        replayed(project, kind, kind)
    environment = {
        "AIRFLOW_HOME": str(root / "airflow"),
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": "google-cloud-platform://?project=example",
        **AWS,
        "PYTHONPATH": f"{ROOT}:{ROOT / 'include'}",
    }
    command = [sys.executable, "-m", "tests.support.provider_runs", service, str(PROVIDERS)]
    done = subprocess.run(
        [*command, str(project.root), *server],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def of_aws(tmp_path_factory: pytest.TempPathFactory, s3: Moto) -> Any:
    kinds = ("emr", "emr_serverless")
    return executed(tmp_path_factory.mktemp("aws"), "emr", s3.endpoint, kinds=kinds)


@pytest.fixture(scope="module")
def of_kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(tmp_path_factory.mktemp("kubernetes"), "kubernetes", kinds=("kubernetes",))


@pytest.fixture(scope="module")
def of_google(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return executed(tmp_path_factory.mktemp("google"), "dataproc", kinds=("dataproc",))


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_every_emr_cluster_is_terminated_and_tagged(of_aws: Any) -> None:
    emr = {name: each for name, each in of_aws.items() if not name.startswith("serverless_")}
    emr.pop("left_behind")
    assert {name: each["states"] for name, each in emr.items() if {*each["states"]} - {"TERMINATED"}} == {}
    assert [name for name, each in emr.items() if not each["states"]] == ["throttled_throughout"]
    for tags in (tags for each in emr.values() for tags in each["tags"]):
        deadline = deadline_of(tags["drawdown-deadline"])
        assert deadline is not None
        assert deadline > datetime.now(UTC)
        assert tags["drawdown-run"].startswith("drawdown-emr-replay-")
    for name in ("runs", "throttled"):
        assert (emr[name]["up"], emr[name]["job"], emr[name]["down"]) == ("success",) * 3
    assert len(emr["sigkill"]["states"]) == 2
    assert len(emr["answer_lost"]["states"]) == 2
    assert emr["of_another_project"]["left"] != "TERMINATED"
    assert emr["first_comes_back"]["kill"] == "success"
    assert not emr["first_comes_back"]["left"].startswith("TERMINAT")
    assert len(emr["first_comes_back"]["states"]) == 2


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_an_emr_task_fails_with_the_services_reason(of_aws: Any) -> None:
    assert "exit code 1" in of_aws["step_fails"]["job"]
    for name, why in {
        "no_capacity": "VALIDATION_ERROR): EC2 is out of capacity",
        "bootstrap_fails": "bootstrap action 1 returned a non-zero return code",
        "spot_reclaimed": "Spot capacity was reclaimed",
        "cluster_gone": "Idle for 900 s",
    }.items():
        said = of_aws[name]["job"]
        assert said.startswith("AirflowFailException"), said
        assert "cluster.ended" in said
        assert why in said
    assert "ThrottlingException" in of_aws["throttled_throughout"]["up"]


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_an_emr_step_that_is_no_longer_waited_for_is_cancelled(of_aws: Any) -> None:
    assert "max attempts" in of_aws["wait_times_out"]["job"]
    assert of_aws["throttled_while_waiting"]["kill"] == "success"
    for name in ("wait_times_out", "throttled_while_waiting"):
        assert "CancelSteps" in of_aws[name]["calls"], name


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_a_cluster_is_taken_down_by_a_service_that_throttles(of_aws: Any) -> None:
    assert of_aws["down_cannot_ask"]["down"] == "success"
    again = of_aws["down_throttled"]
    assert "ThrottlingException" in again["first"]
    assert int(again["tries"]) > 1
    assert again["down"] == "success"


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_no_job_run_of_emr_serverless_outlives_its_task(of_aws: Any) -> None:
    runs = {name.removeprefix("serverless_"): each for name, each in of_aws.items() if "serverless_" in name}
    # What moto says of a job run that was not cancelled, because it has ended.
    ended = {name: [run["state"] for run in each["runs"]] for name, each in runs.items()}
    assert ended == {
        "runs": ["SUCCESS"],
        "fails": ["SUCCESS"],
        "no_capacity": ["SUCCESS"],
        "quota": [],
        "throttled_throughout": [],
        "answer_lost": ["CANCELLED"] * 2,
        "times_out": ["CANCELLED"],
        "throttled_while_waiting": ["CANCELLED"],
        "killed": ["CANCELLED"],
        "tried_again": ["CANCELLED", "SUCCESS"],
    }
    assert runs["runs"]["job"] == runs["tried_again"]["second"] == "success"
    assert "ExitCode: 1" in runs["fails"]["job"]
    assert "maximumCapacity" in runs["no_capacity"]["job"]
    assert runs["killed"]["kill"] == "success"
    assert "maximum vCPUs" in runs["quota"]["job"]
    for run in (run for each in runs.values() for run in each["runs"]):
        assert run["tags"]["drawdown-run"].startswith("drawdown-emr-serverless-")
        assert run["within"] >= 5


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_doctor_finds_the_cluster_that_a_dead_machine_has_left(
    of_aws: Any, s3: Moto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = load_project(make(tmp_path / "project", metastore="sqlite:///m.db").root)
    with Metastore.open(project.metastore_url):
        pass
    environment = {**AWS, "AWS_ENDPOINT_URL": s3.endpoint, "PYTHONPATH": f"{ROOT / 'include'}:{PROVIDERS}"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "path", [*sys.path, str(PROVIDERS)])
    found = [check for check in remote_clusters(project) if "EMR cluster" in check.what]
    left = of_aws["left_behind"]["id"]
    assert [check.do for check in found] == [
        f"aws emr terminate-clusters --region eu-central-1 --cluster-ids {left}"
    ]
    assert "is past its deadline, 2024-05-01 00:00 UTC" in found[0].what


def commands_that_end(answers: list[dict[str, Any]]) -> list[str]:
    """What drawdown.airflow.remote.leftovers says of one profile's service."""
    [answer] = answers
    assert answer["failed"] == ""
    for found in answer["found"]:
        assert found["run"].startswith("drawdown-")
        assert deadline_of(found["deadline"]) is not None
    return [found["end"] for found in answer["found"]]


@pytest.mark.full
@pytest.mark.capability("HOST-12")
def test_what_runs_in_the_other_services_is_named_with_the_command_that_ends_it(
    of_aws: Any, of_google: Any, of_kubernetes: Any
) -> None:
    [end] = commands_that_end(of_aws["serverless_killed"]["named"])
    region = "--region eu-west-1 --application-id 00fexample0abcdef"
    assert end.startswith(f"aws emr-serverless cancel-job-run {region} --job-run-id ")
    [end] = commands_that_end(of_google["runs"]["named"])
    [cluster] = of_google["runs"]["left_before"]
    assert end == f"gcloud dataproc clusters delete {cluster} --project=example --region=europe-west3"
    [end] = commands_that_end(of_kubernetes["killed"]["named"])
    assert end.startswith("kubectl delete sparkapplication drawdown-kubernetes-replay-")
    assert end.endswith(" --namespace data")


@pytest.mark.capability("HOST-12")
def test_every_dataproc_cluster_is_deleted_and_labelled(of_google: Any) -> None:
    assert {name: each["left"] for name, each in of_google.items() if each["left"]} == {}
    assert (of_google["runs"]["up"], of_google["runs"]["job"], of_google["runs"]["down"]) == ("success",) * 3
    assert len(of_google["runs"]["left_before"]) == 1
    assert "SystemExit: 1" in of_google["job_fails"]["job"] or "failed" in of_google["job_fails"]["job"]
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in of_google["no_capacity"]["up"]
    assert "quota" in of_google["quota"]["up"]
    assert "Not found" in of_google["cluster_gone"]["job"]
    again = of_google["tried_again"]
    assert again["second"] == "success"
    assert again["left_after_the_late_kill"], "a first try that comes back deletes nothing of the second's"
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
