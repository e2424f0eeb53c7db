"""A client of Airflow's REST API (``/api/v2``), for a local Airflow: a few calls, one connection each."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import quote, urlencode

from drawdown.errors import MachineError
from drawdown.processes.ports import LOOPBACK

TIMEOUT = 60.0
_ASKED_AGAIN = ("GET", "PATCH")
"""Calls that may be sent twice: asking, and setting what is set already."""


class AirflowApi:
    """Calls as the given user; the token is asked for at the first call.

    Args:
        prefix: the path of Airflow's address, as behind a proxy.
    """

    def __init__(self, port: int, user: str, password: str, prefix: str = "") -> None:
        self._port = port
        self._prefix = prefix
        self._login = {"username": user, "password": password}
        self._token: str | None = None

    def call(self, method: str, *path: str, body: Any = None, **query: Any) -> Any:
        """One call of ``/api/v2/<path>``; returns the decoded answer, None for 404.

        Raises MachineError ``airflow.unreachable`` when nothing answers and ``airflow.refused`` for
        every other status from 400 up, with Airflow's own text.
        """
        if self._token is None:
            _, answer = self._request("POST", "/auth/token", self._login)
            self._token = answer["access_token"]
        address = "/api/v2/" + "/".join(quote(part, safe="") for part in path)
        address += f"?{urlencode(query)}" if query else ""
        try:
            status, answer = self._request(method, address, body)
        except MachineError as error:
            # Its SQLite waits for a lock as long as the busy machine needs.
            if method not in _ASKED_AGAIN or not isinstance(error.__cause__, TimeoutError):
                raise
            status, answer = self._request(method, address, body)
        return None if status == http.client.NOT_FOUND else answer

    def health(self) -> dict[str, Any] | None:
        """State of each component, None while the api-server does not answer yet; needs no login."""
        try:
            status, answer = self._request("GET", "/api/v2/monitor/health", None)
        except MachineError:
            return None
        return answer if status == http.client.OK else None

    def _request(self, method: str, address: str, body: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=TIMEOUT)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        address = self._prefix + address
        where = f"{method} http://{LOOPBACK}:{self._port}{address}"
        try:
            connection.request(method, address, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise MachineError(
                "airflow.unreachable",
                f"the local Airflow does not answer ({error})",
                where=where,
                do="start it (make up) and read api-server.log in its home",
            ) from error
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST and response.status != http.client.NOT_FOUND:
            raise MachineError(
                "airflow.refused",
                f"Airflow answered {response.status}: {text[:500]}",
                where=where,
                do="read api-server.log in its home",
            )
        return response.status, json.loads(text) if text else None
