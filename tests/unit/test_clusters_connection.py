"""What an Airflow connection says about a master, and what is refused of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from drawdown.errors import SpecError
from drawdown.launch.connection import SparkConnection, connected, from_environment
from drawdown.spec import ConnectionCluster, Project, load_project

PROFILE = ConnectionCluster(kind="connection", connection="big_spark", conf={"spark.executor.memory": "2g"})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "include" / "pipelines").mkdir(parents=True)
    (tmp_path / "include" / "project.yaml").write_text("storage_root: storage\n")
    return load_project(tmp_path)


@pytest.mark.parametrize(
    ("text", "master"),
    [
        ("spark://10.0.0.7:7077", "spark://10.0.0.7:7077"),
        ("spark://spark%3A%2F%2Fmaster:7077", "spark://master:7077"),
        ("spark://spark://master:7077?queue=q", "spark://master:7077"),
        ("spark://yarn", "yarn"),
        ("k8s://cluster:6443", "k8s://cluster:6443"),
        ("spark://k8s%3A%2F%2Fhttps%3A%2F%2Fcluster:6443", "k8s://https://cluster:6443"),
        (json.dumps({"conn_type": "spark", "host": "spark://master", "port": 7077}), "spark://master:7077"),
        (json.dumps({"conn_type": "spark", "host": "master", "port": 7077}), "spark://master:7077"),
        (json.dumps({"conn_type": "spark", "host": "yarn", "extra": '{"queue": "q"}'}), "yarn"),
    ],
)
def test_the_environment_gives_what_airflow_would_read(text: str, master: str) -> None:
    assert from_environment("big_spark", {"AIRFLOW_CONN_BIG_SPARK": text}).master == master


@pytest.mark.parametrize(
    ("environment", "id"),
    [
        ({}, "connection.missing"),
        ({"AIRFLOW_CONN_BIG_SPARK": "{"}, "connection.unreadable"),
        ({"AIRFLOW_CONN_BIG_SPARK": "[1]"}, None),
        ({"AIRFLOW_CONN_BIG_SPARK": "spark://h:port"}, "connection.unreadable"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_variable(
    project: Project, environment: dict[str, str], id: str | None
) -> None:
    with pytest.raises(SpecError) as caught:
        connected(project, PROFILE, from_environment("big_spark", environment))
    assert caught.value.id == (id or "connection.master")
    assert "big_spark" in str(caught.value).lower()


@pytest.mark.parametrize(
    ("host", "extra", "id"),
    [
        ("local[4]", {}, "connection.master"),
        ("k8s://https://cluster", {}, "connection.master"),
        ("spark://user:word@master", {}, "connection.master"),
        ("", {}, "connection.master"),
        ("spark://master", {"deploy-mode": "cluster"}, "connection.deploy-mode"),
        ("spark://master", {"keytab": "abc"}, "connection.extra"),
    ],
)
def test_what_could_not_be_kept_is_refused(
    project: Project, host: str, extra: dict[str, Any], id: str
) -> None:
    port = 7077 if host.startswith("spark://") else None
    with pytest.raises(SpecError) as caught:
        connected(project, PROFILE, SparkConnection("big_spark", "spark", host, port, extra))
    assert caught.value.id == id
    assert ("kind: kubernetes" in caught.value.do) == host.startswith("k8s://")


@pytest.mark.parametrize("text", ["k8s://cluster:6443", "spark://k8s%3A%2F%2Fhttps%3A%2F%2Fcluster:6443"])
def test_kubernetes_is_one_clear_error_however_it_is_said(project: Project, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        connected(project, PROFILE, from_environment("big_spark", {"AIRFLOW_CONN_BIG_SPARK": text}))
    error = caught.value
    assert (error.id, error.where) == ("connection.master", "Airflow connection big_spark")
    assert "gives the master 'k8s://" in error.what
    assert "the host spark://HOST with a port, or the host yarn" in error.do


def test_jars_and_this_library_travel_with_the_application(project: Project) -> None:
    settings = connected(project, PROFILE, SparkConnection("big_spark", "spark", "spark://master", 7077))
    assert settings.private is None
    assert settings.conf["spark.executor.memory"] == "2g"
    assert "spark.driver.host" not in settings.conf
    jars = settings.conf["spark.jars"].split(",")
    assert any("delta-spark" in Path(jar).name for jar in jars)
    library = Path(settings.conf["spark.files"])
    assert settings.conf["spark.executorEnv.PYTHONPATH"] == library.name
    with ZipFile(library) as archive:
        assert "drawdown/sinks/code/stage.py" in archive.namelist()
    again = connected(project, PROFILE, SparkConnection("big_spark", "spark", "spark://master", 7077))
    assert again.conf["spark.files"] == str(library)


def test_the_queue_is_yarns(project: Project) -> None:
    yarn = connected(project, PROFILE, SparkConnection("c", "spark", "yarn", None, {"queue": "nightly"}))
    assert yarn.conf["spark.yarn.queue"] == "nightly"
