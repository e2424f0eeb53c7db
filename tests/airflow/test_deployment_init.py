"""What docker-compose.yaml does to a new PostgreSQL server, without containers: its own file and command.

Only addresses, ports and folders are this machine's: each test says which.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from drawdown.machine.postgres import PostgresServer
from tests.support.compose import ROOT
from tests.support.native_services import Native, made_secrets


class Server(PostgresServer):
    """With the superuser that the postgres image makes."""

    user = "postgres"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return made_secrets(tmp_path_factory.mktemp("env"))


@pytest.fixture(scope="module")
def server(secrets: dict[str, str]) -> Iterator[Server]:
    """A server after what the postgres image does with the file mounted into it."""
    with Server() as server:
        psql = shutil.which("psql")
        assert psql is not None
        wanted = {name: secrets[name] for name in ("AIRFLOW_DB_PASSWORD", "METASTORE_PASSWORD")}
        subprocess.run(
            [psql, "-v", "ON_ERROR_STOP=1", "--no-psqlrc", "-f", str(ROOT / "deploy" / "databases.sql")],
            env={**os.environ, **wanted, "PGPASSWORD": server.password, "PGUSER": server.user}
            | {"PGHOST": server.host, "PGPORT": str(server.port), "PGDATABASE": "postgres"},
            check=True,
            capture_output=True,
        )
        yield server


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


def test_init_makes_both_databases_the_pool_and_a_private_login(
    tmp_path: Path, server: Server, secrets: dict[str, str]
) -> None:
    moved = {
        "postgres:5432": f"{server.host}:{server.port}",
        "/opt/drawdown/": f"{ROOT}/",
        "/var/lib/drawdown/": f"{tmp_path}/",
    }
    (tmp_path / "airflow").mkdir(mode=0o700)
    native = Native(tmp_path, secrets, moved)
    done = native.run("airflow-init")
    assert done.returncode == 0, done.stdout + done.stderr
    logins = tmp_path / "airflow" / "passwords.json"
    assert logins.stat().st_mode & 0o777 == 0o600
    assert json.loads(logins.read_text()) == {"admin": secrets["AIRFLOW_ADMIN_PASSWORD"]}
    told = native.environment("airflow-init")
    assert _rows(told["DRAWDOWN_METASTORE"], "SELECT count(*) FROM leases") == [(0,)]
    slots = "SELECT slots FROM slot_pool WHERE pool = 'drawdown'"
    assert _rows(told["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"], slots) == [(2,)]


def _rows(url: str, query: LiteralString) -> list[tuple[Any, ...]]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        return connection.execute(query).fetchall()
