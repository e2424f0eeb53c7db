"""Who may see what: pages over many DAGs show those that the user may read in Airflow, and no others."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Depends


def readable_dags(user: GetUserDep) -> set[str]:
    """Return the ids of the DAGs whose runs the user may read; without a login Airflow answers 401."""
    return get_auth_manager().get_authorized_dag_ids(user=user, method="GET")


ReadableDags = Annotated[set[str], Depends(readable_dags)]
