"""The DAG `drawdown__decide`: choose → decide, one run for each held slice of any pipeline.

It is a separate DAG, so that a request that stays open for days does not block drains: a drain's DAG has one
active run at a time. All pipelines share it, so that 1,000 of them are parsed in time.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, TriggerRule

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.task_arguments import of_tasks
from drawdown.airflow.tasks.decide import DECIDED, ChooseOperator, DecideOperator
from drawdown.spec import Project
from drawdown.values.dag_ids import DECIDE

_OPEN_AT_ONCE = 1_000
_PATIENCE = timedelta(days=7)
"""How long a decision waits for a drain, or for the decision about an earlier slice."""

_DOC = """
### Held slices
An audit that fails holds its slice back: none of its rows is visible, and slices that pass after it wait. A
run of this DAG asks about one held slice: open its task `choose`, or *Required Actions*, read the verdict,
choose and say why.

- **release** publishes the slice as it is, **discard** drops its rows; both publish the slices behind it.
- `decide` carries it out without Spark and updates the asset of the pipeline with what became visible.
- The same by command: `drawdown release NAME --why ...`, `drawdown discard NAME --why ...`. A request
  notices it within an hour; a later answer fails with a message and changes nothing.
- To be asked again after a run that failed: clear its task `choose`.
"""


def decide_dag(project: Project) -> DAG:
    """Return the DAG that `ask` starts, not paused when new; a run started by hand fails with the reason."""
    root = str(project.root)
    dag = DAG(
        DECIDE,
        description="Release or discard held slices",
        schedule=None,
        catchup=False,
        is_paused_upon_creation=False,
        # Every held slice is shown; failed requests must not pause the DAG for the next slice.
        max_active_runs=_OPEN_AT_ONCE,
        max_active_tasks=_OPEN_AT_ONCE,
        max_consecutive_failed_dag_runs=0,
        tags=dag_tags(),
        doc_md=_DOC,
    )
    choose = ChooseOperator(task_id="choose", project_root=root, dag=dag)
    decide = DecideOperator(
        task_id="decide",
        project_root=root,
        inlets=[DECIDED],
        outlets=[DECIDED],
        # A late answer fails `choose`; this task still reports what was decided on the command line.
        trigger_rule=TriggerRule.ALL_DONE,
        timeout=_PATIENCE,
        **of_tasks(project.airflow),
        dag=dag,
    )
    decide.set_upstream(choose)
    return dag
