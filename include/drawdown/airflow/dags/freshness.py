"""The DAG `drawdown__freshness`: one task a pipeline, which fails while its table is older than it may be.

It has a schedule of its own: a drain that hangs, a DAG that is paused and a broken pipeline are what keeps
data from being fresh, so no task behind them can tell. A failed task is what Airflow's own alerts (callbacks,
notifiers, e-mail) hang on. Airflow's DeadlineAlert counts from one DAG run's own dates, so it says nothing
about a run that succeeded with nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.records import open_metastore
from drawdown.airflow.schedules import by_the_clock
from drawdown.airflow.task_arguments import of_tasks
from drawdown.spec import Pipeline, Project, load_pipeline, load_project
from drawdown.values.dag_ids import FRESHNESS

if TYPE_CHECKING:
    from airflow.sdk import Context


_DOC = """
### Freshness
One task for each pipeline with `freshness:`. It fails while nothing has been published for longer than that,
whatever the reason: nothing arrived, slices are held, the drain failed, hangs or is paused.

- `airflow: {freshness_schedule: "*/10 * * * *"}` of include/project.yaml says when it looks.
"""


class FreshnessOperator(BaseOperator):
    """Fails when a pipeline has published nothing for too long; one that never ran is not late yet."""

    def __init__(self, *, project_root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipeline = pipeline

    def execute(self, context: Context) -> None:
        bound = load_pipeline(load_project(Path(self.project_root)), self.pipeline).freshness
        if bound is None:
            self.log.info("%s says no `freshness:` any more", self.pipeline)
            return
        with open_metastore(self.project_root) as metastore:
            last, now = metastore.last_published(self.pipeline), metastore.now()
        if last is None:
            self.log.info("%s has never run", self.pipeline)
        elif now - last > bound.delta:
            raise AirflowFailException(
                f"{self.pipeline} published last at {last:%Y-%m-%d %H:%M:%S} UTC, {now - last} ago;"
                f" freshness: {bound}"
            )


def freshness_dag(project: Project, pipelines: Iterable[Pipeline]) -> DAG:
    """The DAG of all pipelines that say `freshness:`; the others have no task in it."""
    dag = DAG(
        FRESHNESS,
        description="Fails for pipelines that have published nothing for longer than their `freshness:`",
        schedule=by_the_clock(project.airflow.freshness_schedule),
        catchup=False,
        max_active_runs=1,
        # An alarm that somebody has to switch on is none.
        is_paused_upon_creation=False,
        tags=["drawdown"],
        doc_md=_DOC,
    )
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
