"""How the task that takes a cluster down ends its run, for every kind of cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context


DOWN_AGAIN: dict[str, Any] = {"retries": 3, "retry_delay": timedelta(minutes=1)}
"""Arguments of such a task: a service that throttles, or a `down` that fails, has ended nothing."""


class TakesDown(BaseOperator):
    """Takes the cluster down, then fails, and so the run, when somebody has marked the run failed.

    In that case Airflow 3.3 skips the remaining tasks (mark_tasks.set_dag_run_state_to_failed) and leaves the
    run open for its teardown; the run would then succeed, because no task after the job has failed.
    """

    def post_execute(self, context: Context, result: Any = None) -> None:
        super().post_execute(context, result)
        if self._is_marked_failed(context):
            raise AirflowFailException("the run was marked failed, and so it ends")

    def _is_marked_failed(self, context: Context) -> bool:
        ti, dag = context["ti"], context["dag"]
        [job] = [task for task in map(dag.get_task, self.upstream_task_ids) if not task.is_setup]
        behind = job.downstream_task_ids - {self.task_id}
        asked = ti.get_task_states(dag_id=ti.dag_id, task_ids=[job.task_id, *behind], run_ids=[ti.run_id])
        states = asked.get(ti.run_id, {})
        # Without being marked, these tasks are only skipped when there was nothing to do.
        skipped = all(states.get(task) == "skipped" for task in behind)
        return skipped and states.get(job.task_id) in ("failed", "skipped")
