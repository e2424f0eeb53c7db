"""The size that was chosen for an application's cluster, which its settings carry into the run records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS, WHY = "spark.drawdown.workers", "spark.drawdown.workersWhy"
"""Settings of the application: how many workers its cluster has, and why so many."""


def chosen_size(session: SparkSession) -> dict[str, Any]:
    """Return the entries of ``Run.origin``: `workers` and `workers_why`; none if nothing was chosen."""
    conf = session.sparkContext.getConf()
    workers, why = conf.get(WORKERS), conf.get(WHY)
    return {} if workers is None else {"workers": int(workers), "workers_why": why or ""}
