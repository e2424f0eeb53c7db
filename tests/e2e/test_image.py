"""The image of the Dockerfile, built on Debian's own base; its services drain a pipeline into a bucket.

No engine: buildah's chroot isolation runs the programs of the image as its user. Addresses and ports are this
machine's, the folders are the image's own.
"""

from __future__ import annotations

import csv
import json
import re
import secrets as random
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from dev.airflow.api import AirflowApi
from dev.airflow.home import FINISHED
from drawdown.processes.ports import LOOPBACK, free_ports
from drawdown.scaffold.bucket import with_bucket
from tests.support.compose import ROOT
from tests.support.compose_postgres import Server, compose_postgres
from tests.support.image import Image
from tests.support.image_services import Contained
from tests.support.native_services import made_secrets
from tests.support.s3_servers import S3Server
from tests.support.waiting import until

pytestmark = [pytest.mark.full, pytest.mark.capability("HOST-10"), pytest.mark.timeout(3600)]

SERVICES = ("airflow-apiserver", "airflow-scheduler", "airflow-dag-processor")
USER = "50000"
FLIGHTS = ROOT / "include" / "pipelines" / "flights"
CASE = FLIGHTS / "tests" / "each_departure_once"
CANARY = random.token_hex(16)
"""Stands in the settings of the build, where the password of a package index would be."""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image") / "built"
    with Image(folder, {"UV_INDEX_PRIVATE_PASSWORD": CANARY}) as image:
        yield image
    assert not folder.exists()
    assert str(folder) not in Path("/proc/self/mounts").read_text()


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return made_secrets(tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def server(secrets: dict[str, str]) -> Iterator[Server]:
    with compose_postgres(secrets) as server:
        yield server


def test_the_image_keeps_nothing_of_how_it_was_built(image: Image) -> None:
    config = image.config()
    assert (config["User"], config["Entrypoint"]) == ("50000:50000", ["tini", "--"])
    set_by_the_file = {"PATH", "PYSPARK_PYTHON", "PYTHONDONTWRITEBYTECODE", "AIRFLOW_HOME"}
    assert {line.split("=")[0] for line in config["Env"]} == {
        *set_by_the_file,
        *("DRAWDOWN_PROJECT", "DRAWDOWN_STORAGE"),
    }
    assert CANARY not in str(config)
    # /proc and /dev are not the image's; packages of 1.5 GB were there before the settings were read.
    places = [image.root / name for name in ("etc", "home", "opt/drawdown", "root", "run", "tmp", "var")]
    found = subprocess.run(
        ["grep", "--recursive", "--files-with-matches", "--fixed-strings", CANARY, *places],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stdout) == (1, "")
    assert not list((image.root / "run" / "secrets").glob("*"))


def test_its_user_changes_no_code_and_no_jar(image: Image) -> None:
    writable = "import os, sys; print([path for path in sys.argv[1:] if os.access(path, os.W_OK)])"
    code = ["include/drawdown", "include/pipelines", "dags", ".drawdown/jars", ".drawdown/archive", ".venv"]
    data = ["/var/lib/drawdown/airflow", "/var/lib/drawdown/storage", ".drawdown/logs", ".drawdown/runs"]
    program = f"import os; print(os.getuid(), os.getgid()); {writable}"
    command = image.command(["python", "-c", program, *code, *data], {})
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == f"50000 50000\n{data}\n"


@dataclass(frozen=True)
class Deployed:
    """The image's Airflow after `airflow-init`, with a bucket as the storage of its project."""

    services: Contained
    page: int
    health: int
    bucket: str


@pytest.fixture(scope="module")
def deployed(image: Image, server: Server, secrets: dict[str, str], s3: S3Server) -> Deployed:
    page, health = free_ports(2)
    moved = {
        "postgres:5432": f"{server.host}:{server.port}",
        "airflow-apiserver:8080": f"{LOOPBACK}:{page}",
        "localhost:8080": f"{LOOPBACK}:{page}",
        '"AIRFLOW__API__PORT": "8080"': f'"AIRFLOW__API__PORT": "{page}"',
        "0.0.0.0": LOOPBACK,
        "localhost:8974": f"{LOOPBACK}:{health}",
    }
    bucket = s3.bucket()
    # What a user changes before the build: the bucket in project.yaml, and `flights` has a DAG of its own.
    project = (ROOT / "include" / "project.yaml").read_text()
    alone = re.sub(r"\ngroup: .*", "", (FLIGHTS / "pipeline.yaml").read_text())
    image.write("include/project.yaml", with_bucket(project, f"s3://{bucket}/drawdown"))
    image.write("include/pipelines/flights/pipeline.yaml", alone)
    services = Contained(image, secrets, moved)
    services.add(
        {
            "DRAWDOWN_STORAGE": f"s3://{bucket}/drawdown",
            "DRAWDOWN_S3_ENDPOINT": s3.endpoint,
            "AWS_ACCESS_KEY_ID": s3.access_key,
            "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        }
    )
    done = services.run("airflow-init")
    assert done.returncode == 0, done.stdout + done.stderr
    return Deployed(services, page, health, bucket)


def test_a_pipeline_drains_through_the_airflow_of_the_image_into_a_bucket(
    image: Image, deployed: Deployed, secrets: dict[str, str], s3: S3Server
) -> None:
    s3.client(deployed.bucket).put("drawdown/landing/flights/wave1.csv", (CASE / "wave1.csv").read_bytes())
    own_port = {"AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(deployed.health)}
    with ExitStack() as running:
        for name in SERVICES:
            running.callback(deployed.services.start(name, own_port).stop)
        api = AirflowApi(deployed.page, "admin", secrets["AIRFLOW_ADMIN_PASSWORD"])
        until(lambda: set(api.health() or {}) and api.call("GET", "dags", "flights"), 600)
        for name in SERVICES:
            until(lambda name=name: deployed.services.is_well(name), 300)  # type: ignore[misc]
        users: set[str] = set()
        state = _run_of_flights(api, users, image)
        assert state == "success", _logs(api)
        assert users == {USER}
    until(lambda: not image.processes(), 60)
    table = DeltaTable(f"s3://{deployed.bucket}/drawdown/tables/flights", storage_options=_access(s3))
    numbers = table.to_pyarrow_table().column("flight").to_pylist()
    with (CASE / "wave1.expected.csv").open(newline="") as expected:
        assert sorted(numbers) == sorted(int(row["flight"]) for row in csv.DictReader(expected))
    assert list((image.root / "var/lib/drawdown/storage").iterdir()) == []
    told = deployed.services.said("airflow-scheduler", "drawdown", "runs", "--json")
    (run,) = json.loads(told)["data"]
    assert (run["pipeline"], run["state"], run["counts"]["published"]) == ("flights", "succeeded", 2)


def _run_of_flights(api: AirflowApi, users: set[str], image: Image) -> str:
    """Trigger a run and wait for its end; add the users of whatever ran in the container meanwhile."""
    api.call("PATCH", "dags", "flights", body={"is_paused": False})
    body = {"logical_date": None, "conf": {}}
    run = api.call("POST", "dags", "flights", "dagRuns", body=body)["dag_run_id"]

    def ended() -> str | None:
        users.update(image.processes().values())
        state = str(api.call("GET", "dags", "flights", "dagRuns", run)["state"])
        return state if state in FINISHED else None

    return until(ended, 900)


def _logs(api: AirflowApi) -> str:
    """The end of the log of each task of the one run."""
    (run,) = api.call("GET", "dags", "flights", "dagRuns")["dag_runs"]
    path = ("dags", "flights", "dagRuns", run["dag_run_id"], "taskInstances")
    tasks = api.call("GET", *path)["task_instances"]
    texts = []
    for task in tasks:
        answer = api.call("GET", *path, task["task_id"], "logs", "1", full_content="true")
        texts.append(f"{task['task_id']} {task['state']}: {str((answer or {}).get('content'))[-3000:]}")
    return "\n".join(texts)


def _access(s3: S3Server) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": s3.endpoint,
        "AWS_REGION": s3.region,
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_ALLOW_HTTP": "true",
    }
