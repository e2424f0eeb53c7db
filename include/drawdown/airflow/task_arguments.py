"""What `airflow:` of a spec says, as arguments of Airflow's operators."""

from __future__ import annotations

from typing import Any

from drawdown.airflow.tasks.task_failures import NoRetryOfPermanent
from drawdown.spec import Airflow


def of_tasks(tasks: Airflow) -> dict[str, Any]:
    """Return the arguments of the tasks beside a job; a timeout ends each of them, whatever it waits for."""
    given = {
        "retries": tasks.retries,
        "retry_delay": tasks.retry_delay.delta,
        "execution_timeout": tasks.task_timeout.delta,
        "priority_weight": tasks.priority_weight,
        "retry_policy": NoRetryOfPermanent(),
    }
    return given if tasks.queue is None else {**given, "queue": tasks.queue}


def of_job(tasks: Airflow) -> dict[str, Any]:
    """Return the arguments of a Spark job: it takes a slot in the pool, and has a longer timeout."""
    return {**of_tasks(tasks), "pool": tasks.pool, "execution_timeout": tasks.execution_timeout.delta}
