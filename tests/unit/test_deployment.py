"""docker-compose.yaml and Dockerfile: no engine runs them here, so what they say is checked by itself.

`tests/airflow/test_deployment_airflow.py` and `tests/engine/test_deployment_daemons.py` run parts of it;
`tests/e2e/test_image.py` builds the image and runs parts of it there.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from dev.airflow.environment import airflow_environment
from dev.deployment import LOGINS_FILE as LOGINS
from drawdown.jvm.jars import BROKER, read_lock
from drawdown.jvm.spark_home import spark_home
from tests.support.compose import FILE, ROOT, example, resolved, unresolved, variables_of
from tests.support.image import Image

SCHEMA = ROOT / "tests" / "fixtures" / "compose_spec" / "compose-spec.json"
SERVICES: dict[str, dict[str, Any]] = unresolved()["services"]
OURS = sorted(name for name, service in SERVICES.items() if "build" in service)
AIRFLOW = sorted(name for name in OURS if name.startswith("airflow-"))
DOCKERFILE = (ROOT / "Dockerfile").read_text()
# Documented by each image: https://hub.docker.com/_/postgres, and docker/examples/README.md of Apache Kafka.
DOCUMENTED = {
    "postgres": {
        "variables": r"POSTGRES_(PASSWORD|USER|DB|INITDB_ARGS|INITDB_WALDIR|HOST_AUTH_METHOD)|PGDATA",
        "paths": {"/var/lib/postgresql/data", "/docker-entrypoint-initdb.d/databases.sql"},
        "programs": {"pg_isready"},
    },
    "apache/kafka": {
        "variables": r"KAFKA_[A-Z_]+|CLUSTER_ID",
        "paths": {"/var/lib/kafka/data", "/etc/kafka/secrets", "/mnt/shared/config"},
        "programs": {"/opt/kafka/bin/kafka-broker-api-versions.sh"},
    },
}


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return [value] if isinstance(value, str) else []


def test_the_file_fits_the_compose_specification() -> None:
    validator = Draft202012Validator(json.loads(SCHEMA.read_text()))
    filled = resolved({name: value or "s" for name, value in example().items()})
    for document in (unresolved(), filled):
        assert [error.message for error in validator.iter_errors(document)] == []


def test_the_specification_would_refuse_a_wrong_key() -> None:
    document = unresolved()
    document["services"]["kafka"]["helthcheck"] = {}
    assert not Draft202012Validator(json.loads(SCHEMA.read_text())).is_valid(document)


def test_every_part_is_there() -> None:
    assert set(SERVICES) == {
        *("postgres", "airflow-init", "airflow-apiserver", "airflow-scheduler", "airflow-dag-processor"),
        *("airflow-triggerer", "kafka", "spark-master", "spark-worker-1", "spark-worker-2"),
    }


def test_every_variable_stands_in_the_example_and_every_line_of_it_is_used() -> None:
    used = {found["name"] for found in variables_of(FILE.read_text())}
    assert used == set(example())


def test_no_secret_has_a_default_and_each_says_what_makes_it() -> None:
    for found in variables_of(FILE.read_text()):
        if example()[found["name"]]:
            assert (found["kind"], found["text"]) == (":-", example()[found["name"]])
        else:
            assert (found["kind"], found["text"]) == (":?", "run make env")


def test_whatever_is_called_a_secret_comes_from_a_variable() -> None:
    secret = re.compile(r"PASSWORD$|SECRET|_KEY$|TOKEN")
    for name, service in SERVICES.items():
        for key, value in service.get("environment", {}).items():
            if secret.search(key):
                assert re.fullmatch(r"\$\{\w+:\?run make env\}", value), (name, key)
        for text in _strings(service):
            assert not re.search(r"://\w+:(?!\$\{)[^@/]+@", text), (name, text)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_has_limits_a_log_limit_and_a_way_to_come_back(name: str) -> None:
    service = SERVICES[name]
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert service["logging"]["options"]["max-size"]
    assert service["restart"] == ("no" if name == "airflow-init" else "unless-stopped")
    assert service["networks"] == ["inside"]


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"airflow-init"}))
def test_every_service_that_stays_says_whether_it_is_well(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_what_is_waited_for_exists_and_can_say_that_it_is_ready() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            condition = how["condition"]
            assert other in SERVICES, name
            if condition == "service_healthy":
                assert "healthcheck" in SERVICES[other]
            else:
                assert (condition, SERVICES[other]["restart"]) == ("service_completed_successfully", "no")


def test_every_volume_is_declared_and_used_and_every_file_is_in_the_project() -> None:
    sources = [each.split(":")[0] for service in SERVICES.values() for each in service.get("volumes", [])]
    named = {source for source in sources if not source.startswith(".")}
    assert named == set(unresolved()["volumes"])
    files = [source for source in sources if source.startswith(".")]
    assert files
    assert all((ROOT / source).is_file() for source in files)


def test_image_tags_are_exact() -> None:
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert all(re.search(r":\d+\.\d+(\.\d+)?(-\w+)?$", image) for image in images.values()), images
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert {images[name] for name in OURS} == {f"drawdown:{version[1]}"}


def test_the_broker_is_of_the_version_that_the_tests_run() -> None:
    locked = {jar.coordinate.rpartition(":")[2] for jar in read_lock() if "kafka_2.13" in jar.coordinate}
    assert {SERVICES["kafka"]["image"]} == {f"apache/kafka:{version}" for version in locked}
    assert BROKER in {jar.folder for jar in read_lock()}


@pytest.mark.parametrize("name", sorted(set(SERVICES) - set(OURS)))
def test_images_of_others_are_used_as_they_document(name: str) -> None:
    service = SERVICES[name]
    documented: dict[str, Any] = DOCUMENTED[service["image"].rpartition(":")[0]]
    handed_on = set(re.findall(r"^\\getenv \w+ (\w+)$", (ROOT / "deploy/databases.sql").read_text(), re.M))
    for variable in service["environment"]:
        assert re.fullmatch(documented["variables"], variable) or variable in handed_on, variable
    assert {each.split(":")[1] for each in service["volumes"]} <= documented["paths"]
    assert service["healthcheck"]["test"][1] in documented["programs"]
    assert "command" not in service


def test_addresses_name_services_and_the_ports_that_they_listen_on() -> None:
    listening = {
        ("postgres", "5432"),
        ("kafka", "9092"),
        ("airflow-apiserver", SERVICES["airflow-apiserver"]["environment"]["AIRFLOW__API__PORT"]),
        ("spark-master", "7077"),
        ("localhost", "8974"),  # the default of [scheduler] scheduler_health_check_server_port
        ("localhost", "8080"),
        ("localhost", "8081"),
        ("localhost", "9093"),  # the broker's own controller
        ("127.0.0.1", "8080"),
    }
    text = re.sub(r"^\s*#.*$", "", FILE.read_text(), flags=re.MULTILINE)
    named = re.findall(r"(?:@|//|\b)([a-z][a-z0-9.-]*|127\.0\.0\.1):(\d{4})\b", text)
    assert set(named) <= listening, set(named) - listening
    master = SERVICES["spark-master"]["command"]
    assert _after(master, "--host", "--port", "--webui-port") == ["spark-master", "7077", "8080"]
    assert _after(SERVICES["spark-worker-1"]["command"], "--webui-port") == ["8081"]


def test_only_the_page_of_airflow_is_published_and_to_this_machine_alone() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"airflow-apiserver": ["127.0.0.1:${AIRFLOW_PORT:-8080}:8080"]}


@pytest.mark.parametrize("name", OURS)
def test_our_services_have_no_rights_to_spare(name: str) -> None:
    assert SERVICES[name]["cap_drop"] == ["ALL"]
    assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
    assert "user" not in SERVICES[name]


@pytest.mark.parametrize("name", OURS)
def test_commands_are_installed(name: str) -> None:
    command: list[str] = SERVICES[name]["command"]
    if command[0] == "python":
        module = ROOT / Path(*command[2].split(".")).with_suffix(".py")
        assert module.is_file()
    elif command[0] == "spark-class":
        assert (spark_home() / "bin" / "spark-class").is_file()
        (core,) = (spark_home() / "jars").glob("spark-core_2.13-*.jar")
        assert f"{command[1].replace('.', '/')}.class" in zipfile.ZipFile(core).namelist()
    else:
        assert command[0] == "airflow"
        assert command[1] in _airflow_commands()


def _airflow_commands() -> set[str]:
    source = next(spark_home().parent.glob("airflow/cli/cli_config.py")).read_text()
    return set(re.findall(r'name="([a-z-]+)"', source))


def test_airflow_is_told_all_that_the_local_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of `make up`, all but what only a small machine, SQLite or the loopback interface asks for."""
    for name in [name for name in os.environ if name.startswith(("DRAWDOWN", "PYSPARK"))]:
        # What stands around the tests is handed on.
        monkeypatch.delenv(name)
    local = airflow_environment(ROOT, tmp_path / "home", 8080)
    only_there = re.compile(r"AIRFLOW__(SCHEDULER|DAG_PROCESSOR)__|.*CONNECT_ARGS$")
    in_the_image = set(re.findall(r"([A-Z_]+)=/", DOCKERFILE))
    ours = [name for name in local if name.startswith(("AIRFLOW", "DRAWDOWN", "PYSPARK"))]
    for service in AIRFLOW:
        told = SERVICES[service]["environment"]
        missing = {n for n in ours if n not in told and n not in in_the_image and not only_there.match(n)}
        assert missing <= {LOGINS}
        for same in (
            *("CORE__EXECUTOR", "CORE__PARALLELISM", "CORE__HOSTNAME_CALLABLE", "CORE__LOAD_EXAMPLES"),
            *("CORE__SIMPLE_AUTH_MANAGER_USERS", "API__WORKERS"),
        ):
            assert told[f"AIRFLOW__{same}"] == local[f"AIRFLOW__{same}"]
        assert json.loads(told["AIRFLOW_CONN_SPARK_DEFAULT"]) == json.loads(
            local["AIRFLOW_CONN_SPARK_DEFAULT"]
        )


def test_variables_of_the_project_are_those_that_its_file_reads() -> None:
    read = set(re.findall(r"\$\{(\w+)", (ROOT / "include" / "project.yaml").read_text()))
    given = {
        key for service in SERVICES.values() for key in service.get("environment", {}) if "DRAWDOWN" in key
    }
    assert given <= read
    assert {"DRAWDOWN_METASTORE", "DRAWDOWN_KAFKA"} <= given
    assert "DRAWDOWN_STORAGE=" in DOCKERFILE


def test_what_the_image_copies_is_there_and_let_through() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    let_through = {line[1:] for line in ignored if line.startswith("!")}
    sources = {
        source for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M) for source in line.split()[:-1]
    }
    assert ignored[1] == "*"
    assert all((ROOT / source).exists() for source in sources)
    assert {source.split("/")[0] for source in sources} == let_through


def test_the_image_is_made_of_what_set_up_is_made_of() -> None:
    assert "python3 dev/bootstrap.py" in DOCKERFILE
    base = re.search(r"^ARG BASE=python:(\d+\.\d+)\.\d+-slim-bookworm\nFROM \${BASE}$", DOCKERFILE, re.M)
    assert base is not None
    locked = re.search(r"--python-version (\S+)", (ROOT / "requirements.txt").read_text())
    assert locked is not None
    assert locked[1] == base[1]
    assert "openjdk-17-jre-headless" in DOCKERFILE


@pytest.mark.parametrize("lock", ["requirements.txt", "dev/requirements.txt", "tests/moto.txt"])
def test_every_package_is_locked_by_its_hashes(lock: str) -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text())
    packages = [entry for entry in entries if not entry.startswith("#")]
    assert len(packages) > 20
    for entry in packages:
        assert re.match(r"[\w.\[\]-]+==\S+( ; .*)? \\\n    --hash=sha256:[0-9a-f]{64}", entry), entry[:200]


def test_what_tests_need_is_not_in_the_image() -> None:
    dev = re.findall(r"^([\w-]+)", (ROOT / "dev" / "requirements.in").read_text(), re.M)
    assert {"pytest", "playwright", "mypy"} <= set(dev)
    runtime = re.findall(r"^([\w-]+)(?:\[.*\])?==", (ROOT / "requirements.txt").read_text(), re.M)
    assert not {name.lower() for name in dev} & set(runtime)
    assert "dev/requirements.*" in (ROOT / ".dockerignore").read_text().splitlines()


def test_who_runs_the_image_cannot_change_its_jars() -> None:
    """All that set-up has made belongs to root; runs write logs and their own folders, nothing else."""
    owned = re.findall(r"chown .*|install -d .*", DOCKERFILE)
    written = [path for line in owned for path in re.findall(r"(?<![\w/])\.drawdown\S*", line)]
    assert written == [".drawdown/logs", ".drawdown/runs", ".drawdown/clusters"]


@pytest.mark.capability("HOST-10")
def test_the_image_does_not_run_as_root_and_holds_no_secret() -> None:
    lines = DOCKERFILE.splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 50000:50000"]
    after = lines[lines.index("USER 50000:50000") + 1 :]
    assert all(line.startswith(("ENTRYPOINT [", "CMD [")) for line in after)
    assert not re.search(r"PASSWORD|SECRET|FERNET", DOCKERFILE)


@pytest.mark.capability("SAFE-06")
def test_the_login_of_airflow_is_where_no_driver_is() -> None:
    with_login = {
        name
        for name, each in SERVICES.items()
        if any("login:" in volume for volume in each.get("volumes", []))
    }
    assert with_login == {"airflow-init", "airflow-apiserver"}
    told = {name for name in SERVICES if LOGINS in SERVICES[name].get("environment", {})}
    assert told == with_login
    assert SERVICES["airflow-apiserver"]["environment"][LOGINS].startswith("/var/lib/drawdown/login/")


@pytest.mark.capability("SAFE-06")
def test_a_program_that_its_user_cannot_read_shows_its_environment_to_nobody(tmp_path: Path) -> None:
    """As the image makes tini, which is process 1 of each container and has all of Airflow's keys."""
    assert 'chmod 0711 "$(command -v tini)" "$(command -v curl)"' in DOCKERFILE
    program = Path(tempfile.mkdtemp(dir="/tmp")) / "sleep"
    program.parent.chmod(0o755)
    shutil.copy(shutil.which("sleep") or "", program)
    try:
        assert _sees_environment_of(program, 0o755)
        assert not _sees_environment_of(program, 0o711 if os.geteuid() == 0 else 0o111)
    finally:
        shutil.rmtree(program.parent)


def _sees_environment_of(program: Path, mode: int) -> bool:
    """Whether a process sees the environment of another one of its user that runs this program."""
    program.chmod(mode)
    user = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else os.geteuid()
    with subprocess.Popen([program, "60"], env={"KEY": "canary"}, user=user) as running:
        seen = subprocess.run(
            ["cat", f"/proc/{running.pid}/environ"], capture_output=True, user=user, check=False
        )
        running.kill()
    return b"canary" in seen.stdout


def test_the_base_is_the_only_argument_of_the_build() -> None:
    """An argument stays in the image's history; a secret does not."""
    assert re.findall(r"^ARG (\w+)", DOCKERFILE, re.MULTILINE) == ["BASE"]
    assert set(re.findall(r"--mount=type=(\w+)", DOCKERFILE)) == {"secret"}


def test_whoever_is_not_root_reads_why_the_image_is_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        pytest.raises(pytest.skip.Exception, match="an image is built as root"),
        Image(tmp_path / "built", {}),
    ):
        pass
    assert not (tmp_path / "built").exists()


def test_folders_under_volumes_belong_to_the_user_of_the_image() -> None:
    """A named volume takes its owner from the folder it covers; else it is root's."""
    made = re.search(r"install -d -o drawdown -g drawdown -m 0700 (.+)$", DOCKERFILE, re.MULTILINE)
    assert made is not None
    covered = {each.split(":")[1] for name in OURS for each in SERVICES[name].get("volumes", [])}
    work = _after(SERVICES["spark-worker-1"]["command"], "--work-dir")
    assert {*covered, *work} == set(made[1].split())


def _after(command: list[str], *options: str) -> list[str]:
    return [command[command.index(option) + 1] for option in options]


def test_the_page_names_every_service_volume_and_profile_and_no_other() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    table = page.partition("| service |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z0-9-]+)`", re.sub(r"\| [^|]+ \| [^|]+ \|$", "|", table, flags=re.M)))
    assert {name for name in SERVICES if name not in named} == {"spark-worker-2"}
    assert named <= {*SERVICES, "-2"}
    assert set(re.findall(r"docker compose exec (\S+)", page)) <= set(SERVICES)
    assert set(re.findall(r"--profile (\w+)", page)) == {
        profile for service in SERVICES.values() for profile in service.get("profiles", [])
    }
    volumes = re.search(r"Data are in the volumes (.+?)\. ", page)
    assert volumes is not None
    assert set(re.findall(r"`(\w+)`", volumes[1])) == set(unresolved()["volumes"])


def test_the_values_shown_for_kubernetes_are_those_of_the_compose_file() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    shown = yaml.safe_load(re.findall(r"```yaml\n(.+?)```", page, re.DOTALL)[0])
    told = SERVICES["airflow-scheduler"]["environment"]
    same = {each["name"]: each["value"] for each in shown["env"] if each["name"].startswith("AIRFLOW")}
    assert same == {name: told[name] for name in same} != {}
    assert {each["envName"] for each in shown["secret"]} <= set(told)
    assert shown["executor"] == told["AIRFLOW__CORE__EXECUTOR"]
    assert f"drawdown:{shown['defaultAirflowTag']}" == SERVICES["airflow-scheduler"]["image"]
    assert f"apache-airflow=={shown['airflowVersion']} " in (ROOT / "requirements.txt").read_text()
    assert f"AIRFLOW_HOME={shown['airflowHome']} " in DOCKERFILE
    (mount,) = shown["volumeMounts"]
    assert f"DRAWDOWN_STORAGE={mount['mountPath']}\n" in DOCKERFILE
