"""What `airflow:` of a spec says, as arguments of Airflow's operators."""

from __future__ import annotations

from typing import Any

from drawdown.spec import Airflow


def of_tasks(tasks: Airflow) -> dict[str, Any]:
    """Of the tasks beside a job: each ends in time, whatever it waits for."""
    given = {
        "retries": tasks.retries,
        "retry_delay": tasks.retry_delay.delta,
        "execution_timeout": tasks.task_timeout.delta,
        "priority_weight": tasks.priority_weight,
    }
    return given if tasks.queue is None else {**given, "queue": tasks.queue}


def of_job(tasks: Airflow) -> dict[str, Any]:
    """Of a Spark job: it has a place in the pool, and more time."""
    return {**of_tasks(tasks), "pool": tasks.pool, "execution_timeout": tasks.execution_timeout.delta}
