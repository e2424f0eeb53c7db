"""PostgreSQL as docker-compose.yaml sets it up: a server of this machine with deploy/databases.sql."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from drawdown.testing.servers.postgres import PostgresServer
from tests.support.compose import ROOT


class Server(PostgresServer):
    """With the superuser that the postgres image makes."""

    user = "postgres"


@contextmanager
def compose_postgres(secrets: Mapping[str, str]) -> Iterator[Server]:
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
