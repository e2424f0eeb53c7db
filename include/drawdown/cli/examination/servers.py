"""What `drawdown doctor` sees of brokers and databases: whether they answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from drawdown.cli.examination.finding import Finding
from drawdown.errors import DrawdownError
from drawdown.spec import Broker, Database, Project

_BROKER_SECONDS = 1.5
_DATABASE_SECONDS = 2


def brokers(project: Project) -> Iterator[Finding]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: _broker(*item), project.brokers.items())


def _broker(name: str, broker: Broker) -> Finding:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from drawdown.plan.kafka_client import client_config

    if broker.connection is not None:
        return Finding("broker", "ok", f"{name}: its login is in Airflow; not asked")
    try:
        AdminClient(client_config(broker)).list_topics(timeout=_BROKER_SECONDS)
    except KafkaException as cause:
        what = f"{name} at {broker.bootstrap_servers} does not answer: {cause.args[0].str()}"
        return Finding("broker", "warn", what, "make up   # starts a local one; or correct `brokers:`")
    return Finding("broker", "ok", f"{name} at {broker.bootstrap_servers} answers")


def databases(project: Project) -> Iterator[Finding]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: _database(*item), project.databases.items())


def _database(name: str, database: Database) -> Finding:
    from drawdown.publishing.postgres_database import connected

    if database.connection is not None:
        return Finding("database", "ok", f"{name}: its login is in Airflow; not asked")
    try:
        with connected(database, name, seconds=_DATABASE_SECONDS) as connection:
            version = connection.info.server_version // 10000
    except DrawdownError as error:
        return Finding("database", "warn", f"{name} at {database.address}: {error.what}", error.do)
    return Finding("database", "ok", f"{name} at {database.address} answers: PostgreSQL {version}")
