"""What Airflow has been told of assets, oldest first."""

from __future__ import annotations

from typing import Any

from dev.airflow.home import LocalAirflow
from drawdown.errors import MachineError
from tests.support.waiting import until


def asset_events(airflow: LocalAirflow, **query: str) -> list[dict[str, Any]]:
    """`query`: parameters of Airflow's REST API.

    Airflow 3 answers 500 for as long as a DAG run that an event has queued has no `start_date` yet.
    """

    def answer() -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = airflow.api.call("GET", "assets", "events", order_by="timestamp", **query)
        except MachineError as error:
            if error.id == "airflow.refused" and "answered 500" in error.what:
                return None
            raise
        return found

    events: list[dict[str, Any]] = until(answer, 60)["asset_events"]
    return events
