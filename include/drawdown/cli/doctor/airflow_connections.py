"""Finds Airflow connections without importing Airflow: in the environment or in its database.

Secrets backends are not asked, so connections that exist only there are not found.
"""

from __future__ import annotations

import os

from drawdown.cli.doctor.airflow_pools import scalar


def has_connection(url: str | None, connection_id: str) -> bool:
    """Whether the connection exists.

    Args:
        url: of Airflow's database; None if this machine has none.

    Raises:
        MachineError: ``airflow.database`` when it cannot be read.
    """
    if f"AIRFLOW_CONN_{connection_id.upper()}" in os.environ:
        return True
    query = "SELECT 1 FROM connection WHERE conn_id = :name"
    return url is not None and scalar(url, query, connection_id) is not None
