"""Whether Airflow has a connection, found without importing it: in the environment or in its database.

A secrets backend is not asked: what is only there is not seen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from drawdown.cli.doctor.airflow_pools import scalar


def has_connection(url: str | None, connection_id: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether there is one.

    Args:
        url: of Airflow's database; None where this machine knows none.

    Raises:
        MachineError: ``airflow.database`` when it cannot be read.
    """
    if f"AIRFLOW_CONN_{connection_id.upper()}" in environment:
        return True
    query = "SELECT 1 FROM connection WHERE conn_id = :name"
    return url is not None and scalar(url, query, connection_id) is not None
