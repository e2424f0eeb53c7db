"""Who may see what: pages over many DAGs show those that the user may read in Airflow, and no others."""

from __future__ import annotations

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import Depends


def readable_dags(user: GetUserDep) -> set[str]:
    """Return the ids of the DAGs whose runs the user may read; without a login Airflow answers 401."""
    return get_auth_manager().get_authorized_dag_ids(user=user, method="GET")


ReadableDags = Annotated[set[str], Depends(readable_dags)]

may_read_runs = requires_access_dag("GET", DagAccessEntity.RUN)
"""What the page of one DAG depends on: the right to read the runs of the DAG in its path (``dag_id``)."""
