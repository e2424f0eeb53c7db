"""Further users of a local Airflow: what its tests need to be somebody with fewer rights."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dev.airflow.api import AirflowApi
from dev.airflow.home import LocalAirflow


def users(**roles: str) -> Mapping[str, str]:
    """Environment of a LocalAirflow with these users beside its own; a role of ``""`` gives no right."""
    listed = ",".join(f"{name}:{role}" for name, role in {"admin": "admin", **roles}.items())
    return {"AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": listed}


def api_of(airflow: LocalAirflow, user: str) -> AirflowApi:
    """The REST API as this user, whose password Airflow has made when it started."""
    passwords = json.loads((airflow.home / "passwords.json").read_text())
    return AirflowApi(airflow.port, user, passwords[user])


def token_of(airflow: LocalAirflow, user: str) -> str:
    """What the user's browser would send."""
    passwords = json.loads((airflow.home / "passwords.json").read_text())
    _, answer = airflow.api._request("POST", "/auth/token", {"username": user, "password": passwords[user]})
    return str(answer["access_token"])
