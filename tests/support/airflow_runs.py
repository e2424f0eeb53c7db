"""What a DAG run in a real Airflow came to; where it failed, the words of the tasks that failed."""

from __future__ import annotations

from dev.airflow.home import LocalAirflow

# Enough of a log to hold an error of Drawdown and the end of Spark's
SHOWN = 4000


def assert_success(airflow: LocalAirflow, dag_id: str, run_id: str, seconds: float) -> None:
    """Waits for the end of a run; AssertionError with the logs of its failed tasks if it failed."""
    if airflow.wait(dag_id, run_id, seconds) == "success":
        return
    failed = {
        each["task_id"]: airflow.task_log(dag_id, run_id, each["task_id"], each["try_number"])[-SHOWN:]
        for each in airflow.task_instances(dag_id, run_id)
        if each["state"] == "failed"
    }
    logs = "\n".join(f"---- {task}\n{log}" for task, log in failed.items())
    raise AssertionError(f"run {run_id} of {dag_id} failed: {airflow.task_states(dag_id, run_id)}\n{logs}")
