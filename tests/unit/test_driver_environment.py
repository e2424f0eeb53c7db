"""Drivers and daemons of Spark get an allow-list of the environment, and nothing of Airflow's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from drawdown.errors import SpecError
from drawdown.launch.environment import ALWAYS, PASSED, for_spark, passed_by
from drawdown.spec import Project, load_project

TASK = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "JAVA_HOME": "/java",
    "SPARK_LOCAL_DIRS": "/scratch",
    "DRAWDOWN_PROJECT": "/project",
    "AIRFLOW__CORE__FERNET_KEY": "canary",
    "AIRFLOW__API_AUTH__JWT_SECRET": "canary",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": "canary",
    "AIRFLOW_CONN_ELSEWHERE": "canary",
    "_AIRFLOW_WWW_USER_PASSWORD": "canary",
    "POSTGRES_PASSWORD": "canary",
    "KAFKA_PASSWORD": "wanted",
    "AWS_REGION": "north",
}
NEEDED = {"PATH", "LC_ALL", "JAVA_HOME", "SPARK_LOCAL_DIRS", "DRAWDOWN_PROJECT"}


def test_what_spark_needs_and_the_project_names_is_passed_on() -> None:
    assert set(for_spark(TASK, [])) == NEEDED
    assert set(for_spark(TASK, ["KAFKA_PASSWORD", "AWS_*"])) == {*NEEDED, "KAFKA_PASSWORD", "AWS_REGION"}


@pytest.mark.capability("SAFE-06")
def test_a_pattern_of_ours_takes_no_secret_and_the_projects_own_do() -> None:
    secrets = {"HADOOP_CREDSTORE_PASSWORD": "s", "SPARK_AUTH_SECRET": "s", "DRAWDOWN_METRICS_TOKEN": "s"}
    assert set(for_spark({**TASK, **secrets}, [])) == NEEDED
    assert set(for_spark({**TASK, **secrets}, ["SPARK_AUTH_SECRET"])) == {*NEEDED, "SPARK_AUTH_SECRET"}
    assert set(for_spark({**TASK, "DRAWDOWN_CREDENTIALS": "a file"}, [])) == {*NEEDED, "DRAWDOWN_CREDENTIALS"}


@pytest.mark.capability("SAFE-06")
@pytest.mark.parametrize(
    ("lineage", "reached"),
    [("", True), ("lineage: {namespace: n}", True), ("lineage: {url: 'https://l.example'}", False),
     ("lineage: {file: l.jsonl}", False)],
)  # fmt: skip
def test_the_key_of_lineage_reaches_drivers_that_send_with_it(
    tmp_path: Path, lineage: str, reached: bool
) -> None:
    project = _project(tmp_path, f"storage_root: storage\nmetastore: sqlite:///m.db\n{lineage}\n")
    names = ["OPENLINEAGE_API_KEY", "OPENLINEAGE__TRANSPORT__AUTH", "OPENLINEAGE_CONFIG", "OPENLINEAGE_URL"]
    environment = {**dict.fromkeys(names, "canary"), "OPENLINEAGE_NAMESPACE": "n"}
    found = for_spark(environment, passed_by(project))
    assert found.pop("OPENLINEAGE_NAMESPACE") == "n"
    assert set(found) == (set(names) if reached else set())


@pytest.mark.capability("SAFE-06")
def test_the_page_lists_what_reaches_a_driver() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    section = page.partition("## What a driver has in its environment")[2].partition("\n## ")[0]
    assert {name for name in (*ALWAYS, "OPENLINEAGE_*") if f"`{name}`" not in section} == set()


def test_a_process_that_has_not_read_the_project_is_told_the_names() -> None:
    told = {**TASK, PASSED: "KAFKA_PASSWORD"}
    assert set(for_spark(told)) == {*NEEDED, PASSED, "KAFKA_PASSWORD"}
    assert set(for_spark({**TASK, PASSED: ""})) == {*NEEDED, PASSED}


def test_where_nobody_knows_the_project_only_airflows_own_stays_behind() -> None:
    passed = for_spark(TASK)
    assert set(TASK) - set(passed) == {name for name in TASK if "AIRFLOW_" in name}


def test_nobody_can_ask_for_airflows_own() -> None:
    assert not {name for name in for_spark(TASK, ["*", "AIRFLOW__*"]) if "AIRFLOW_" in name}


def _project(root: Path, text: str) -> Project:
    (root / "include").mkdir()
    (root / "include" / "project.yaml").write_text(text)
    return load_project(root)


def test_the_names_are_those_of_project_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SERVERS", "localhost:9092")
    project = _project(
        tmp_path,
        'brokers: {default: {bootstrap_servers: "${KAFKA_SERVERS}"}}\n'
        'metastore: "sqlite:///${STATE:-.drawdown}/metastore.db"\n'
        "pass_environment: [AWS_REGION, GOOGLE_*]\n",
    )
    assert project.passed_environment == ("AWS_REGION", "GOOGLE_*", "KAFKA_SERVERS", "STATE")


@pytest.mark.parametrize(
    "text",
    [
        "pass_environment: [AIRFLOW__CORE__FERNET_KEY]\n",
        "pass_environment: [AIRFLOW_*]\n",
        'metastore: "${AIRFLOW__DATABASE__SQL_ALCHEMY_CONN}"\n',
        'metastore: "${AIRFLOW__DATABASE__SQL_ALCHEMY_CONN:-sqlite:///x.db}"\n',
    ],
)
def test_a_project_that_asks_for_airflows_own_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SpecError, match=r"spec\.airflow-keys"):
        _project(tmp_path, text)


@pytest.mark.parametrize("name", ["*", "A*B", "a b", "", "1A"])
def test_a_pattern_is_the_beginning_of_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(SpecError):
        _project(tmp_path, f'pass_environment: ["{name}"]\n')


OF_AMAZON = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"}
OF_GOOGLE = {"GOOGLE_APPLICATION_CREDENTIALS"}


@pytest.mark.capability("OBJ-16")
@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("storage_root: s3://lake/root\n", OF_AMAZON),
        ("storage_root: gs://lake/root\n", OF_GOOGLE),
        ("storages: {lake: {address: s3://lake}, other: {address: gs://lake}}\n", OF_AMAZON | OF_GOOGLE),
        ("storage_root: s3://lake/root\nstorages: {lake: {address: s3://lake, connection: key}}\n", set()),
        ('storages: {lake: {address: s3://lake, access_key: "${ID}", secret_key: "${KEY}"}}\n', set()),
        ("storages: {lake: {address: gs://lake, google_key_file: /key.json}}\n", set()),
        ("storage_root: lake\n", set()),
    ],
)
def test_the_machines_own_key_is_passed_on_for_buckets_without_one_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, passed: set[str]
) -> None:
    monkeypatch.setenv("ID", "id")
    monkeypatch.setenv("KEY", "key")
    project = _project(tmp_path, text)
    task = {**TASK, **dict.fromkeys(OF_AMAZON | OF_GOOGLE, "canary"), "AWS_PROFILE": "another"}
    assert {*for_spark(task, passed_by(project))} & (OF_AMAZON | OF_GOOGLE | {"AWS_PROFILE"}) == passed
