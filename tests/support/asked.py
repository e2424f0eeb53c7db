"""What Airflow asks a person: requests as *Required Actions* shows them, and answers over the REST API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dev.airflow.api import AirflowApi
from dev.airflow.home import LocalAirflow
from tests.support.waiting import until


@dataclass(frozen=True)
class Request:
    """The request that a task of a DAG run makes."""

    airflow: LocalAirflow
    dag_id: str
    run_id: str
    task_id: str

    @property
    def _detail(self) -> tuple[str, ...]:
        of_run = "dags", self.dag_id, "dagRuns", self.run_id
        return *of_run, "taskInstances", self.task_id, "-1", "hitlDetails"

    def opened(self) -> dict[str, Any]:
        """Waited for, and not answered yet."""

        def found() -> dict[str, Any] | None:
            states = self.airflow.task_states(self.dag_id, self.run_id)
            if states.get(self.task_id) != "awaiting_input":
                assert states.get(self.task_id) not in ("failed", "upstream_failed"), states
                return None
            detail = self.airflow.api.call("GET", *self._detail)
            return detail if detail and not detail["response_received"] else None

        # A Spark application may come before it.
        detail = until(found, 400)
        # No person is as quick: Airflow fails a task whose answer comes before the executor has told that
        # the worker which asked has ended.
        until(self._is_left_by_its_worker, 60)
        return detail

    def _is_left_by_its_worker(self) -> bool:
        log = (self.airflow.home / "run" / "scheduler.log").read_text().splitlines()
        task = f"<TaskInstance: {self.dag_id}.{self.task_id} {self.run_id} [scheduled]"
        key = f"(dag_id='{self.dag_id}', task_id='{self.task_id}', run_id='{self.run_id}'"
        begun = sum("Trying to enqueue tasks" in line and task in line for line in log)
        ended = sum("Received executor event with state success" in line and key in line for line in log)
        return ended >= begun > 0

    def answer(self, choice: str, why: str, api: AirflowApi | None = None) -> None:
        """As the user of `api`, by default the local Airflow's own. Raises MachineError when refused."""
        body = {"chosen_options": [choice], "params_input": {"why": why}}
        (api or self.airflow.api).call("PATCH", *self._detail, body=body)
