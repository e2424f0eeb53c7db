"""Brings the database of a local Airflow up to date: tables and the capacity pool, in one process.

``python -m dev.airflow.database SLOTS``, run in the environment of environment.py.
Airflow reads its settings when it is imported, so this cannot happen in the process that asks for it;
and ``airflow db migrate`` followed by ``airflow pools set`` would pay for that import twice.
"""

from __future__ import annotations

import sys

from dev.airflow.environment import POOL


def bring_up_to_date(slots: int) -> None:
    """Migrate (also makes a new database), then create or update the pool."""
    from airflow.models.pool import Pool
    from airflow.utils import db

    db.upgradedb()
    Pool.create_or_update_pool(
        POOL,
        slots=slots,
        description="Spark applications that may run at once on this machine",
        include_deferred=False,
    )


if __name__ == "__main__":
    bring_up_to_date(int(sys.argv[1]))
