"""Logins of brokers, databases and storages from Airflow connections, which only tasks can read."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from pydantic import SecretStr

from drawdown.airflow.lineage_parent import providers_lineage
from drawdown.credentials import AIRFLOWS_LINEAGE, LINEAGE_KEY, Login, connections_of
from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project

log = logging.getLogger(__name__)

_TYPES = {"brokers": "kafka", "databases": "postgres", "storages": "aws"}


def look_up(project: Project, pipelines: Iterable[Pipeline]) -> dict[str, Login]:
    """Return the logins these pipelines need, by the names of `connections_of`.

    Raises:
        SpecError: ``airflow.no-connection``, ``airflow.no-login``.
    """
    found = {
        server: _login(server, connection)
        for server, connection in connections_of(project, pipelines).items()
    }
    return found | _of_lineage(project)


def _of_lineage(project: Project) -> dict[str, Login]:
    """Return the key of the lineage backend, or the provider's transport; without them a run goes on."""
    try:
        if connection := project.lineage.connection:
            password = BaseHook.get_connection(connection).password
            return {LINEAGE_KEY: Login("", SecretStr(password))} if password else {}
        if project.lineage.url or project.lineage.file or (config := providers_lineage()) is None:
            return {}
        return {AIRFLOWS_LINEAGE: Login("", SecretStr(json.dumps(config)))}
    except Exception as error:  # noqa: BLE001 - lineage must not fail a run
        log.warning("lineage: no login (%s): see `lineage:` in include/project.yaml", type(error).__name__)
        return {}


def _login(server: str, connection_id: str) -> Login:
    kind = _TYPES[server.partition(".")[0]]
    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise SpecError(
            "airflow.no-connection",
            f"{server} takes its login from the connection {connection_id!r}, which does not exist",
            where="include/project.yaml",
            do=f"airflow connections add {connection_id} --conn-type {kind} --conn-login ... --conn-password",
        ) from None
    if not connection.login or not connection.password:
        raise SpecError(
            "airflow.no-login",
            f"the connection {connection_id!r} of {server} has no login or no password",
            where=f"Airflow connection {connection_id}",
            do="give it both",
        )
    return Login(connection.login, SecretStr(connection.password))


def password_of(place: str, connection_id: str) -> SecretStr:
    """Return the password of a connection: a secret without a user.

    Args:
        place: the key of include/project.yaml that names the connection.

    Raises:
        SpecError: ``airflow.no-connection``, ``airflow.no-login``.
    """
    try:
        connection = BaseHook.get_connection(connection_id)
    except AirflowNotFoundException:
        raise SpecError(
            "airflow.no-connection",
            f"{place} takes a secret from the connection {connection_id!r}, which does not exist",
            where="include/project.yaml",
            do=f"airflow connections add {connection_id} --conn-type generic --conn-password ...",
        ) from None
    if not connection.password:
        raise SpecError(
            "airflow.no-login",
            f"the connection {connection_id!r} of {place} has no password",
            where=f"Airflow connection {connection_id}",
            do="give it one",
        )
    return SecretStr(connection.password)
