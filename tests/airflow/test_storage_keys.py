"""A bucket's key in an Airflow connection reaches every task that opens storage, and nobody else."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from drawdown.airflow.logins import look_up
from drawdown.errors import SpecError
from drawdown.spec import load_project
from drawdown.values.dag_ids import UPKEEP
from tests.support.buckets import access_to
from tests.support.dag_project import DagProject
from tests.support.dag_runs import Runs
from tests.support.s3_servers import Versitygw

pytestmark = pytest.mark.capability("OBJ-16")

STORAGES = """
storages:
  lake: {{address: "s3://{bucket}", endpoint: "{endpoint}", connection: lake_key}}
"""


def project_of(folder: Path, bucket: str, endpoint: str) -> DagProject:
    project = DagProject(folder / "project", STORAGES.format(bucket=bucket, endpoint=endpoint), retries=0)
    spec = project.root / "include/project.yaml"
    spec.write_text(spec.read_text().replace("storage_root: storage", f"storage_root: s3://{bucket}/root"))
    project.pipeline("events")
    return project


def test_a_connection_that_is_not_there_is_named_with_the_command_that_adds_it(tmp_path: Path) -> None:
    project = load_project(project_of(tmp_path, "lake", "http://localhost:1").root)
    with pytest.raises(SpecError, match=r"storages\.lake takes its login") as error:
        look_up(project, [])
    assert error.value.do.startswith("airflow connections add lake_key --conn-type aws")


@pytest.fixture
def bucket(versitygw: Versitygw) -> str:
    """Of a server that looks at signatures."""
    return versitygw.bucket()


@pytest.fixture
def runs(tmp_path: Path, versitygw: Versitygw, bucket: str) -> Iterator[Runs]:
    key = {"conn_type": "aws", "login": versitygw.access_key, "password": versitygw.secret_key}
    project = project_of(tmp_path, bucket, versitygw.endpoint)
    runs = Runs(project, tmp_path / "airflow", {"AIRFLOW_CONN_LAKE_KEY": json.dumps(key)})
    yield runs
    for pid in runs.processes():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.full
@pytest.mark.timeout(400)
def test_tasks_reach_the_bucket_and_its_key_is_in_no_log_database_or_command_line(
    runs: Runs, versitygw: Versitygw, bucket: str
) -> None:
    versitygw.client(bucket).put("root/landing/events/1.json", b'{"id": 1, "name": "one"}\n')
    task = runs.start("events")
    runs.wait_for("spark: starting", task)
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in runs.processes()]
    assert any("org.apache.spark.deploy.SparkSubmit" in command for command in commands)
    task.wait(300)

    log = runs.log.read_text()
    states = runs.states("events")
    assert states["publish"] == "success", log[-4000:]
    table = DeltaTable(
        f"s3://{bucket}/root/tables/events", storage_options=access_to(versitygw, bucket).s3_options
    )
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1, "name": "one"}]

    assert runs.run(UPKEEP)["upkeep"] == "success", runs.log.read_text()[-4000:]
    log += runs.log.read_text()
    secret = versitygw.secret_key
    assert secret not in log
    assert not [command for command in commands if secret in command]
    assert secret.encode() not in (runs.airflow.home / "airflow.db").read_bytes()
    kept = [path for path in runs.project.root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert not [path for path in kept if secret.encode() in path.read_bytes()]
    client = versitygw.client(bucket)
    assert not [key for key in client.keys("") if secret.encode() in client.get(key)]
