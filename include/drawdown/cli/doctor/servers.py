"""Checks whether brokers and databases answer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from drawdown.cli.doctor.commands import start_broker
from drawdown.cli.doctor.finding import Check
from drawdown.errors import DrawdownError
from drawdown.spec import Broker, Database, Project

_BROKER_SECONDS = 1.5
_DATABASE_SECONDS = 2


def brokers(project: Project) -> Iterator[Check]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: _broker(project, *item), project.brokers.items())
    for name, broker in project.brokers.items():
        if broker.security_protocol == "SASL_PLAINTEXT":
            what = f"{name}: SASL_PLAINTEXT: records, and PLAIN's password, are sent unencrypted"
            yield Check("broker", "warn", what, "use a broker listener with SASL_SSL")


def _broker(project: Project, name: str, broker: Broker) -> Check:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from drawdown.brokers.client import client_config

    if broker.connection is not None:
        return Check("broker", "ok", f"{name}: its login is in Airflow, so it was not checked")
    try:
        AdminClient(client_config(broker)).list_topics(timeout=_BROKER_SECONDS)
    except KafkaException as cause:
        what = f"{name} at {broker.bootstrap_servers} does not answer: {cause.args[0].str()}"
        return Check("broker", "warn", what, start_broker(project))
    return Check("broker", "ok", f"{name} at {broker.bootstrap_servers} answers")


def databases(project: Project) -> Iterator[Check]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: _database(*item), project.databases.items())
    for name, database in project.databases.items():
        if database.sslmode in ("disable", "prefer"):
            what = (
                f"{name}: with sslmode {database.sslmode}, rows may be sent unencrypted and to an"
                " unverified server"
            )
            yield Check("database", "warn", what, "set `sslmode: verify-full` in include/project.yaml")


def _database(name: str, database: Database) -> Check:
    from drawdown.sinks.postgres.database import connected

    if database.connection is not None:
        return Check("database", "ok", f"{name}: its login is in Airflow, so it was not checked")
    try:
        with connected(database, name, seconds=_DATABASE_SECONDS) as connection:
            version = connection.info.server_version // 10000
    except DrawdownError as error:
        return Check("database", "warn", f"{name} at {database.address}: {error.what}", error.do)
    return Check("database", "ok", f"{name} at {database.address} answers: PostgreSQL {version}")
