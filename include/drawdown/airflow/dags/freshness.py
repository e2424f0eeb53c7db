"""The DAG `drawdown__freshness`: records figures, sends alerts, and fails for pipelines that are too old.

It has its own schedule: data gets old when a drain hangs, a DAG is paused or a pipeline is broken, and tasks
after those would not run. Airflow's own alerts (callbacks, notifiers, e-mail) react to the failed task.
Airflow's DeadlineAlert counts from one DAG run's own dates, so it does not cover runs that succeed with
nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, TriggerRule
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.schedules import by_the_clock
from drawdown.airflow.task_arguments import of_tasks
from drawdown.airflow.tasks.figures import RECORD, SEND, AlertsOperator, FiguresOperator
from drawdown.airflow.tasks.overdue_clusters import END, EndOverdueOperator
from drawdown.airflow.tasks.project_operators import PipelineOperator
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.fleet.freshness import counts_from, is_late
from drawdown.spec import Pipeline, Project, load_pipeline, load_project
from drawdown.values.dag_ids import FRESHNESS
from drawdown.values.text import lasting, utc

if TYPE_CHECKING:
    from airflow.sdk import Context


_DOC = """
### Freshness
`record-figures` records how all pipelines stand, for the pages, the metrics and the alerts; `send-alerts`
tells the targets of `alert_targets:` what has changed. `end-overdue-clusters` calls `down` of clusters that
no run has taken down, and fails while one of them is not known to be gone.

One task for each pipeline with `freshness:`. It fails while nothing has been published for longer than that,
whatever the reason: nothing arrived, slices are held, the drain failed, hangs or is paused. For one that runs
after others the time counts from what they published and it has not taken; without that it is not late.

- `airflow: {freshness_schedule: "*/10 * * * *"}` of include/project.yaml says when it looks.
"""


class FreshnessOperator(PipelineOperator):
    """Fails when readers have waited too long for a publish; a pipeline that never ran is not late yet."""

    @plainly
    def execute(self, context: Context) -> None:
        pipeline = load_pipeline(load_project(Path(self.project_root)), self.pipeline)
        bound = pipeline.freshness
        if bound is None:
            self.log.info("%s no longer has `freshness:`", self.pipeline)
            return
        with open_metastore(self.project_root) as metastore:
            since, now = counts_from(metastore, pipeline), metastore.now()
            ran = metastore.last_published(self.pipeline) is not None
        if not ran:
            self.log.info("%s has never run: it is not late yet", self.pipeline)
        elif since is None:
            self.log.info("fresh: %s has taken all that came from %s", self.pipeline, _upstream(pipeline))
        elif is_late(now - since, bound.delta):
            raise AirflowFailException(f"late: {_said(pipeline, since, now)}")
        else:
            self.log.info("fresh: %s", _said(pipeline, since, now))


def _said(pipeline: Pipeline, since: datetime, now: datetime) -> str:
    ago = f"at {utc(since)}, {lasting(now - since)} ago; freshness: {pipeline.freshness}"
    if isinstance(pipeline.schedule, list):
        return f"{pipeline.name} has not published what came from {_upstream(pipeline)} {ago}"
    return f"{pipeline.name} published last {ago}"


def _upstream(pipeline: Pipeline) -> str:
    assets = pipeline.schedule if isinstance(pipeline.schedule, list) else []
    return ", ".join(asset.pipeline for asset in assets)


def freshness_dag(project: Project, pipelines: Iterable[Pipeline]) -> DAG:
    """Return the DAG with the tasks for all pipelines, and one for each pipeline that has `freshness:`."""
    dag = DAG(
        FRESHNESS,
        description="Records figures, sends alerts, and fails for pipelines older than their `freshness:`",
        schedule=by_the_clock(project.airflow.freshness_schedule),
        catchup=False,
        max_active_runs=1,
        # An alarm must work without being switched on.
        is_paused_upon_creation=False,
        tags=dag_tags(),
        doc_md=_DOC,
    )
    shared = {**of_tasks(project.airflow), "retries": 0}
    figures = FiguresOperator(task_id=RECORD, project_root=str(project.root), **shared, dag=dag)
    alerts = AlertsOperator(
        task_id=SEND,
        project_root=str(project.root),
        # What was recorded before is better than silence.
        trigger_rule=TriggerRule.ALL_DONE,
        **shared,
        dag=dag,
    )
    alerts.set_upstream(figures)
    EndOverdueOperator(task_id=END, project_root=str(project.root), **shared, dag=dag)
    for pipeline in pipelines:
        if pipeline.freshness is not None:
            FreshnessOperator(
                task_id=pipeline.name,
                project_root=str(project.root),
                pipeline=pipeline.name,
                owner=pipeline.owner,
                **{**of_tasks(project.tasks_of(pipeline.airflow)), "retries": 0},
                dag=dag,
            )
    return dag
