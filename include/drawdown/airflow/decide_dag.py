"""The DAG `<name>__decide`: choose → decide, one run for each held slice.

It is a DAG of its own, so that a request that stays open for days keeps no drain from running: a drain's
DAG has one active run at a time.
"""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, TriggerRule

from drawdown.airflow.decisions import ChooseOperator, DecideOperator, decide_dag_id
from drawdown.airflow.schedules import asset_of
from drawdown.spec import Pipeline, Project

_WAIT = timedelta(seconds=30)
_TRIES = 10_000
"""Three days and a half: a decision waits while a drain runs, or for that about an earlier slice."""

_DOC = """
### Held slices of {name}
An audit that fails holds its slice back: nothing of it is visible, and what passes behind it waits. A run of
this DAG asks about one held slice: open its task `choose`, or *Required Actions*, read the verdict, choose
and say why.

- **release** publishes the slice as it is, **discard** drops its rows; both publish what waited behind it.
- `decide` carries it out without Spark and updates the asset `{asset}` with what became visible.
- The same by command: `drawdown release {name} --why ...`, `drawdown discard {name} --why ...`. A request
  notices it within an hour; an answer that comes later changes nothing, and is told so.
- To be asked again after a run that failed: clear its task `choose`.
"""


def decide_dag(project: Project, pipeline: Pipeline) -> DAG:
    """The DAG that `ask` starts; a run started by hand fails and says so. It is not paused when it is new."""
    asset = asset_of(pipeline.name)
    common = {"project_root": str(project.root), "pipeline": pipeline.name, "owner": pipeline.owner}
    dag = DAG(
        decide_dag_id(pipeline.name),
        description=f"Release or discard held slices of {pipeline.name}",
        schedule=None,
        catchup=False,
        is_paused_upon_creation=False,
        tags=sorted({"drawdown", "decide", *pipeline.tags}),
        doc_md=_DOC.format(name=pipeline.name, asset=asset.name),
    )
    choose = ChooseOperator(task_id="choose", dag=dag, **common)
    decide = DecideOperator(
        task_id="decide",
        outlets=[asset],
        # An answer that came too late fails `choose`; what was decided on the command line is told here.
        trigger_rule=TriggerRule.ALL_DONE,
        retries=_TRIES,
        retry_delay=_WAIT,
        dag=dag,
        **common,
    )
    decide.set_upstream(choose)
    return dag
