"""Reads pools and DAGs from Airflow's database without its import, which takes seconds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from drawdown.errors import MachineError

_VARIABLE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


def database_url(state_dir: Path) -> str | None:
    """Return Airflow's database: from the variable, AIRFLOW_HOME or `make up`; None if there is none yet."""
    if named := os.environ.get(_VARIABLE):
        return named
    home = os.environ.get("AIRFLOW_HOME")
    file = (Path(home) if home else state_dir / "airflow") / "airflow.db"
    return f"sqlite:///{file.resolve()}" if file.is_file() else None


def pool_slots(url: str, pool: str) -> int | None:
    """Return a pool's slots, -1 for no limit; None if the pool does not exist. Raises as `scalar`."""
    slots = scalar(url, "SELECT slots FROM slot_pool WHERE pool = :name", pool)
    return None if slots is None else int(slots)


def is_paused(url: str, dag_id: str) -> bool:
    """Return whether Airflow knows the DAG and it is switched off. Raises as `scalar`."""
    return bool(scalar(url, "SELECT is_paused FROM dag WHERE dag_id = :name", dag_id))


def scalar(url: str, query: str, name: str) -> Any:
    """Return the first value of a query by name; None without a row.

    Raises:
        MachineError: ``airflow.database`` when it cannot be read.
    """
    from sqlalchemy import create_engine, make_url, text
    from sqlalchemy.exc import SQLAlchemyError

    try:
        engine = create_engine(make_url(url))
        with engine.connect() as connection:
            return connection.execute(text(query), {"name": name}).scalar()
    except (SQLAlchemyError, ImportError) as cause:
        raise MachineError(
            "airflow.database",
            f"Airflow's database cannot be read ({type(cause).__name__})",
            where=_VARIABLE,
            do="airflow db check",
        ) from None
