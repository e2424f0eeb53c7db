"""Profiles whose driver runs elsewhere: their DAGs of real operators, and requests that the services take."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import AirflowFailException

from dev.test_programs import PROVIDERS
from drawdown.airflow.remote.remote_job import JobSpec
from drawdown.airflow.tasks.drain import DrainOperator
from tests.support.dag_project import ROOT, DagProject

pytestmark = pytest.mark.timeout(900)

SERVERS = "postgresql+psycopg://drawdown@127.0.0.1:1/drawdown"
AWS = "airflow.providers.amazon.aws.operators.emr."
GOOGLE = "airflow.providers.google.cloud.operators.dataproc."


def examples() -> str:
    """The profiles of docs/clusters.md."""
    page = (ROOT / "docs" / "clusters.md").read_text()
    _, *blocks = re.findall(r"```yaml\nclusters:\n(.*?)```", page, re.DOTALL)
    return "clusters:\n  local: {}\n" + "".join(blocks)


def make(root: Path, storage: str = "s3a://lake/drawdown", metastore: str = SERVERS) -> DagProject:
    project = DagProject(root, more=examples())
    file = root / "include" / "project.yaml"
    text = file.read_text().replace("storage_root: storage", f"storage_root: {storage}")
    file.write_text(text.replace("metastore: sqlite:///metastore.db", f"metastore: {metastore}"))
    return project


def replayed(project: DagProject, name: str, cluster: str) -> None:
    folder = project.pipeline(name, f"cluster: {cluster}\nreplay: {{interval: 1 day}}")
    spec = folder / "pipeline.yaml"
    spec.write_text(spec.read_text().replace("publish: audited", "time_column: at"))
    (folder / "schemas" / "events.ddl").write_text("id BIGINT, at TIMESTAMP")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What tests/support/provider_dags.py says of a project with a pipeline of each kind."""
    root = tmp_path_factory.mktemp("clouds")
    project = make(root / "project")
    for kind in ("kubernetes", "emr_serverless", "emr", "dataproc"):
        replayed(project, kind, kind)
    environment = {
        "AIRFLOW_HOME": str(root / "airflow"),
        # Importing three providers takes a machine that has other work longer than Airflow allows.
        "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "0",
        "AIRFLOW_CONN_AWS_DEFAULT": "aws://key:word@/",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'include'}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.provider_dags", str(PROVIDERS), str(project.root)],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["import_errors"] == {}
    return said


def test_each_kind_has_the_operators_of_its_provider(found: Any) -> None:
    classes = {
        dag_id: {task: about["classes"][0] for task, about in tasks.items() if about["classes"]}
        for dag_id, tasks in found["dags"].items()
    }
    for job, suffix in (("drain", ""), ("replay", "__replay")):
        of_kubernetes = classes[f"kubernetes{suffix}"][job]
        assert of_kubernetes.endswith("spark_kubernetes.SparkKubernetesOperator")
        assert classes[f"emr_serverless{suffix}"][job] == f"{AWS}EmrServerlessStartJobOperator"
        assert classes[f"emr{suffix}"] == {
            **classes[f"emr{suffix}"],
            "cluster_up": f"{AWS}EmrCreateJobFlowOperator",
            job: f"{AWS}EmrAddStepsOperator",
            "cluster_down": f"{AWS}EmrTerminateJobFlowOperator",
        }
        assert classes[f"dataproc{suffix}"] == {
            **classes[f"dataproc{suffix}"],
            "cluster_up": f"{GOOGLE}DataprocCreateClusterOperator",
            job: f"{GOOGLE}DataprocSubmitJobOperator",
            "cluster_down": f"{GOOGLE}DataprocDeleteClusterOperator",
        }


@pytest.mark.parametrize("dag_id", ["emr", "dataproc"])
def test_a_cluster_goes_up_before_the_drain_and_down_behind_it(found: Any, dag_id: str) -> None:
    tasks = found["dags"][dag_id]
    assert {task: about["downstream"] for task, about in tasks.items()} == {
        "preflight": ["cluster_up"],
        "cluster_up": ["cluster_down", "drain"],
        "drain": ["audit", "cluster_down"],
        "cluster_down": [],
        "audit": ["publish"],
        "publish": [],
    }
    assert tasks["cluster_up"]["setup"]
    assert tasks["cluster_down"]["teardown"]
    assert tasks["cluster_up"]["pool"] == tasks["drain"]["pool"] == "drawdown"


@pytest.mark.parametrize("dag_id", ["kubernetes", "emr_serverless"])
def test_what_has_no_cluster_of_its_own_is_one_task(found: Any, dag_id: str) -> None:
    tasks = {task: about["downstream"] for task, about in found["dags"][dag_id].items()}
    assert tasks == {"preflight": ["drain"], "drain": ["audit"], "audit": ["publish"], "publish": []}


def test_nothing_of_a_request_is_a_template(found: Any) -> None:
    templates = {field for tasks in found["dags"].values() for about in tasks.values()
                 if about["classes"] for field in about["templates"]}  # fmt: skip
    assert templates <= {"job_flow_id"}


def test_an_argument_that_an_operator_does_not_have_is_refused_by_it(found: Any) -> None:
    assert {dag_id: len(said) for dag_id, said in found["refused"].items()} == {
        "kubernetes": 1,
        "emr_serverless": 1,
        "emr": 3,
        "dataproc": 3,
    }
    assert all("nosuch" in sentence for said in found["refused"].values() for sentence in said)


def test_kubernetes_gets_a_spark_application(found: Any) -> None:
    made = found["asked"]["kubernetes"]["application"]
    assert (made["apiVersion"], made["kind"]) == ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    assert re.fullmatch(r"drawdown-kubernetes-[a-z0-9-]+", made["metadata"]["name"])
    spec = made["spec"]
    assert spec["mainApplicationFile"] == "local:///opt/drawdown/jobs/drain.py"
    assert spec["arguments"][:4] == ["--project", "/opt/drawdown", "--pipeline", "kubernetes"]
    assert json.loads(spec["arguments"][5])["dag_run_id"] == "manual__2024-05-01"
    assert spec["driver"]["envFrom"] == [{"secretRef": {"name": "drawdown"}}]
    assert spec["executor"]["instances"] == 2
    assert "spark.executor.instances" not in spec["sparkConf"]
    assert spec["sparkConf"]["spark.driver.extraClassPath"] == "/opt/drawdown/.drawdown/jars/*"
    assert all(isinstance(value, str) for value in spec["sparkConf"].values())
    replay = found["asked"]["kubernetes__replay"]["application"]["spec"]
    assert replay["mainApplicationFile"].endswith("/jobs/replay.py")
    assert replay["arguments"][4:8] == ["--from", "2024-05-01T00:00:00Z", "--to", "2024-05-02T00:00:00Z"]


def test_emr_serverless_gets_a_job_run_that_names_its_secrets(found: Any) -> None:
    asked = found["asked"]["emr_serverless"]
    assert asked["errors"] == ""
    submit = asked["request"]["jobDriver"]["sparkSubmit"]
    assert submit["entryPoint"] == "local:///opt/drawdown/jobs/drain.py"
    assert "spark.executor.instances=2" in shlex.split(submit["sparkSubmitParameters"])
    assert "EMR.secret@drawdown/metastore" in json.dumps(asked["request"]["configurationOverrides"])


def test_emr_gets_a_cluster_that_ends_by_itself_and_a_step(found: Any) -> None:
    asked = found["asked"]["emr"]
    assert asked["errors"] == ""
    assert asked["flow"]["AutoTerminationPolicy"] == {"IdleTimeout": 900}
    groups = asked["flow"]["Instances"]["InstanceGroups"]
    assert {group["InstanceRole"]: group["InstanceCount"] for group in groups} == {"MASTER": 1, "CORE": 2}
    words = asked["step"]["HadoopJarStep"]["Args"]
    assert words[:3] == ["/opt/drawdown/.venv/bin/python", "/opt/drawdown/jobs/launch.py", "/opt/drawdown"]
    assert "spark.executor.instances=3" in words
    assert "spark.drawdown.workers=3" in words
    assert "spark.drawdown.workersWhy=5 files wait, and so on" in words
    assert words[words.index("/opt/drawdown/jobs/drain.py") + 1] == "--project"
    assert "cluster_up" in asked["of"]


def test_dataproc_gets_a_cluster_that_ends_by_itself_and_a_job(found: Any) -> None:
    asked = found["asked"]["dataproc"]
    assert asked["config"]["worker_config"]["num_instances"] == 2
    assert asked["config"]["lifecycle_config"]["idle_delete_ttl"] == {"seconds": 900}
    # Three tries of an hour and two minutes, and an hour.
    assert asked["config"]["lifecycle_config"]["auto_delete_ttl"] == {"seconds": 3 * 3720 + 3600}
    assert asked["job"]["placement"] == {"cluster_name": asked["name"]}
    assert re.fullmatch(r"[a-z][a-z0-9-]{1,49}[a-z0-9]", asked["name"])


def test_a_replay_asks_for_as_many_workers_as_it_may(found: Any) -> None:
    replay = found["asked"]["dataproc__replay"]
    assert replay["config"]["worker_config"]["num_instances"] == 4


def test_a_word_that_the_service_does_not_know_is_a_sentence(found: Any) -> None:
    assert "cluster.request" in found["rejected"]["emr"]
    assert "LogUrl" in found["rejected"]["emr"]
    assert "gce_cluster_confg" in found["rejected"]["dataproc"]


def parsed(project: DagProject) -> dict[str, str]:
    """DAG id -> its documentation, without any of the providers."""
    bag = DagBag(dag_folder=project.root / "dags", bundle_path=project.root / "dags")
    assert bag.import_errors == {}
    return {dag_id: str(dag.doc_md) for dag_id, dag in bag.dags.items() if "broken" in dag.tags}


def test_a_provider_that_is_missing_breaks_the_pipelines_that_need_it_alone(tmp_path: Path) -> None:
    project = make(tmp_path / "project")
    project.pipeline("small")
    replayed(project, "big", "emr")
    broken = parsed(project)
    assert set(broken) == {"big", "big__replay"}
    assert all("cluster.no-provider" in said and "`amazon`" in said for said in broken.values())


@pytest.mark.parametrize(
    ("storage", "metastore", "id"),
    [("storage", SERVERS, "cluster.storage"), ("s3a://lake/x", "sqlite:///m.db", "cluster.metastore")],
)
def test_what_a_driver_elsewhere_cannot_reach_is_refused(
    tmp_path: Path, storage: str, metastore: str, id: str
) -> None:
    project = make(tmp_path / "project", storage, metastore)
    project.pipeline("big", "cluster: kubernetes")
    assert id in parsed(project)["big"]


def test_a_login_in_an_airflow_connection_is_refused(tmp_path: Path) -> None:
    project = make(tmp_path / "project")
    file = project.root / "include" / "project.yaml"
    broker = {"bootstrap_servers": "kafka:9092", "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN",
              "connection": "kafka_login"}  # fmt: skip
    file.write_text(file.read_text() + yaml.safe_dump({"brokers": {"default": broker}}))
    spec = project.pipeline("big", "cluster: kubernetes") / "pipeline.yaml"
    source = "sources:\n  events: {format: kafka, schema: schemas/events.ddl, options: {subscribe: events}}\n"
    spec.write_text(re.sub(r"sources:\n(  .*\n)+", source, spec.read_text()))
    assert "cluster.login" in parsed(project)["big"], parsed(project)["big"]


def test_a_profile_that_became_local_meanwhile_fails_the_task_for_good(tmp_path: Path) -> None:
    project = make(tmp_path / "project")
    project.pipeline("events", "cluster: emr")
    work = JobSpec(str(project.root), DrainOperator, ("events",), "local", "s3://lake/drawdown")
    with pytest.raises(AirflowFailException, match=r"cluster\.changed: 'local' is of another kind now"):
        work.order({})
