"""The temporary servers that cases need besides Spark: a broker and a database server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from drawdown.spec import Broker, Database, Pipeline, Project
from drawdown.testing.cases.case import Case

if TYPE_CHECKING:
    from drawdown.testing.servers.postgres import PostgresServer


def speaks_kafka(pipeline: Pipeline) -> bool:
    """Whether a source or the sink needs a broker."""
    return pipeline.sink.format == "kafka" or any(s.format == "kafka" for s in pipeline.sources.values())


@contextmanager
def with_broker(project: Project, folder: Path) -> Iterator[Project]:
    """Start a broker, and yield the project with every broker replaced by it."""
    from drawdown.jvm.home import machine_root
    from drawdown.testing.servers.kafka import KafkaServer

    state_dir = machine_root(project.root) / ".drawdown"
    with KafkaServer(folder / "kafka", state_dir=state_dir) as running:
        here = Broker(bootstrap_servers=running.bootstrap_servers)
        yield dataclasses.replace(project, brokers=dict.fromkeys(project.brokers, here))


@contextmanager
def database_server(cases: Sequence[Case]) -> Iterator[PostgresServer | None]:
    """Start a PostgreSQL server if a case writes to one. Raises MachineError ``postgres.missing``."""
    if not any(case.pipeline.sink.format == "postgres" for case in cases):
        yield None
        return
    from drawdown.testing.servers.postgres import PostgresServer

    with PostgresServer() as server:
        yield server


def with_database(project: Project, pipeline: Pipeline, server: PostgresServer | None) -> Project:
    """Return the project with every database replaced by an empty one with the sink table's schema."""
    if server is None or pipeline.sink.format != "postgres":
        return project
    import psycopg
    from psycopg import sql
    from pydantic import SecretStr

    url = server.create_database()
    schema = sql.Identifier(str(pipeline.sink.table).partition(".")[0])
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
    here = Database(
        host=server.host,
        port=server.port,
        dbname=url.rpartition("/")[2],
        user=server.user,
        password=SecretStr(server.password),
    )
    return dataclasses.replace(project, databases=dict.fromkeys(project.databases, here))
