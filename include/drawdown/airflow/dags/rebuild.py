"""The DAG `drawdown__rebuild`: preflight → rebuild → approve → swap, for the pipeline that a run names.

All pipelines share it, so that 1,000 of them are parsed in time. It is only started by hand.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.task_arguments import of_job, of_tasks
from drawdown.airflow.tasks.rebuild import (
    PIPELINE,
    REBUILT,
    ApproveOperator,
    RebuildOperator,
    RebuildPreflightOperator,
    SwapOperator,
)
from drawdown.spec import Project
from drawdown.values.dag_ids import REBUILD

_OPEN_AT_ONCE = 100
_PATIENCE = timedelta(days=1)
"""How long a swap waits for running drains."""

_DOC = """
### Rebuild of a pipeline
After a change that its state cannot take: put the new version into the pipeline's folder `next/`, and
trigger this DAG with the name of the pipeline.

- `rebuild` computes the output again from the beginning, beside the drains, which go on with the old version.
- `approve` asks: open it, or *Required Actions*, read how both outputs differ, choose and say why.
  **approve** swaps the new output in by one commit, **reject** deletes it. Either names the rebuild that is
  shown, and is refused when it was made or compared again since: then trigger this DAG again.
- `swap` carries it out without Spark and updates the asset of the pipeline.
- By command: `drawdown rebuild start | show | approve | discard NAME`; back again:
  `drawdown rebuild rollback NAME --why ...`.
"""


def rebuild_dag(project: Project) -> DAG:
    """Return the DAG, which people start; it is not paused when new."""
    dag = DAG(
        REBUILD,
        description="Rebuild a pipeline after a change that its state cannot take",
        schedule=None,
        catchup=False,
        is_paused_upon_creation=False,
        # A request may stay open for days.
        max_active_runs=_OPEN_AT_ONCE,
        tags=dag_tags(),
        params={PIPELINE: Param("", type="string", title="Pipeline", description="Its folder's name.")},
        doc_md=_DOC,
    )
    common: dict[str, Any] = {"project_root": str(project.root), "dag": dag}
    tasks: list[BaseOperator] = [
        RebuildPreflightOperator(task_id="preflight", **of_tasks(project.airflow), **common),
        RebuildOperator(
            task_id="rebuild",
            **of_job(project.airflow),
            **common,
        ),
        ApproveOperator(task_id="approve", **common),
        SwapOperator(
            task_id="swap",
            inlets=[REBUILT],
            outlets=[REBUILT],
            timeout=_PATIENCE,
            **of_tasks(project.airflow),
            **common,
        ),
    ]
    for before, after in pairwise(tasks):
        after.set_upstream(before)
    return dag
