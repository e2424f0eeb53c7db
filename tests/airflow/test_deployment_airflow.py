"""PostgreSQL and Airflow as docker-compose.yaml sets them up, without containers: its own file and commands.

Only addresses, ports and folders are this machine's: each test says which.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from dev.airflow.api import AirflowApi
from drawdown.processes.ports import LOOPBACK, free_ports
from tests.support.compose import ROOT
from tests.support.compose_postgres import Server, compose_postgres
from tests.support.native_services import Native, made_secrets
from tests.support.waiting import until

COMPONENTS = ("airflow-apiserver", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return made_secrets(tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def server(secrets: dict[str, str]) -> Iterator[Server]:
    with compose_postgres(secrets) as server:
        yield server


@pytest.mark.full
def test_each_database_lets_its_owner_in_and_nobody_else(server: Server, secrets: dict[str, str]) -> None:
    owners = {"airflow": secrets["AIRFLOW_DB_PASSWORD"], "drawdown": secrets["METASTORE_PASSWORD"]}
    for user, password in owners.items():
        for database in owners:
            login = {"host": server.host, "port": server.port, "user": user, "password": password}
            if database == user:
                psycopg.connect(**login, dbname=database).close()  # type: ignore[arg-type]
            else:
                with pytest.raises(psycopg.OperationalError, match="permission denied"):
                    psycopg.connect(**login, dbname=database)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Initialised:
    """The compose file's services after `airflow-init` has ended."""

    native: Native
    folder: Path
    page: int
    health: int


@pytest.fixture(scope="module")
def initialised(
    tmp_path_factory: pytest.TempPathFactory, server: Server, secrets: dict[str, str]
) -> Initialised:
    folder = tmp_path_factory.mktemp("deployed")
    page, health = free_ports(2)
    moved = {
        "postgres:5432": f"{server.host}:{server.port}",
        "airflow-apiserver:8080": f"{LOOPBACK}:{page}",
        "localhost:8080": f"{LOOPBACK}:{page}",
        '"AIRFLOW__API__PORT": "8080"': f'"AIRFLOW__API__PORT": "{page}"',
        "0.0.0.0": LOOPBACK,
        "localhost:8974": f"{LOOPBACK}:{health}",
        "/opt/drawdown/": f"{ROOT}/",
        "/var/lib/drawdown/": f"{folder}/",
    }
    for name in ("airflow", "login"):
        (folder / name).mkdir(mode=0o700)
    (folder / "airflow" / "passwords.json").write_text("of a deployment of before")
    native = Native(folder, secrets, moved)
    done = native.run("airflow-init")
    assert done.returncode == 0, done.stdout + done.stderr
    return Initialised(native, folder, page, health)


@pytest.mark.full
def test_init_makes_both_databases_the_pool_and_a_private_login(
    initialised: Initialised, secrets: dict[str, str]
) -> None:
    assert not (initialised.folder / "airflow" / "passwords.json").exists()
    logins = initialised.folder / "login" / "passwords.json"
    assert logins.stat().st_mode & 0o777 == 0o600
    assert json.loads(logins.read_text()) == {"admin": secrets["AIRFLOW_ADMIN_PASSWORD"]}
    told = initialised.native.environment("airflow-init")
    assert _rows(told["DRAWDOWN_METASTORE"], "SELECT count(*) FROM leases") == [(0,)]
    slots = "SELECT slots FROM slot_pool WHERE pool = 'drawdown'"
    assert _rows(told["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"], slots) == [(2,)]


@pytest.mark.full
@pytest.mark.timeout(900)
def test_airflow_gets_well_in_all_its_parts_and_admin_finds_the_dags(
    initialised: Initialised, secrets: dict[str, str]
) -> None:
    own_port = {"AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(initialised.health)}
    with ExitStack() as running:
        for name in COMPONENTS:
            running.callback(initialised.native.start(name, own_port).stop)
        api = AirflowApi(initialised.page, "admin", secrets["AIRFLOW_ADMIN_PASSWORD"])
        until(lambda: _healthy(api) >= {"metadatabase", "scheduler", "triggerer", "dag_processor"}, 600)
        for name in COMPONENTS:
            assert initialised.native.is_well(name), f"the health check of {name} does not agree"
        until(lambda: api.call("GET", "dags", "nycflights"), 300)
        assert api.call("GET", "pools", "drawdown")["slots"] == 2
        assert api.call("GET", "importErrors")["total_entries"] == 0


def _healthy(api: AirflowApi) -> set[str]:
    parts = api.health() or {}
    return {name for name, told in parts.items() if told.get("status") == "healthy"}


def _rows(url: str, query: LiteralString) -> list[tuple[Any, ...]]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return connection.execute(query).fetchall()
