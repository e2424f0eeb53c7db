"""Pools as Airflow's database has them, read without importing Airflow, which takes seconds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drawdown.errors import MachineError

_VARIABLE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


def database_url(state_dir: Path, environment: Mapping[str, str] = os.environ) -> str | None:
    """Airflow's database here: the variable's, AIRFLOW_HOME's or that of `make up`; None: none yet."""
    if named := environment.get(_VARIABLE):
        return named
    home = environment.get("AIRFLOW_HOME")
    file = (Path(home) if home else state_dir / "airflow") / "airflow.db"
    return f"sqlite:///{file.resolve()}" if file.is_file() else None


def pool_slots(url: str, pool: str) -> int | None:
    """How many slots a pool has, -1: no limit; None when there is no such pool. Raises as `scalar`."""
    slots = scalar(url, "SELECT slots FROM slot_pool WHERE pool = :name", pool)
    return None if slots is None else int(slots)


def scalar(url: str, query: str, name: str) -> Any:
    """The first value of a query about a thing of this name; None without a row.

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
