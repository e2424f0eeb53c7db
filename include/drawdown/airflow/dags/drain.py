"""One DAG: preflight → drain → per pipeline audit → publish.

preflight skips everything after it when nothing is new. drain is one Spark application for all the
pipelines; it fails when one of them failed, after all were tried. audit runs even if drain failed
(ALL_DONE) and reports from the records; publish follows its own audit only; partitions, of a pipeline with
`partitions:`, tells which days or hours are complete; ask, after the audit of a
pipeline with expectations, starts the DAG in which a person decides about a held slice (decide.py).
A cluster that is started for the run has a task before drain and one after it (tasks/cluster.py).
With the parameter `quarantine` a run replays quarantined rows of one pipeline (tasks/quarantine_replay.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import DAG, BaseOperator, TaskGroup, TriggerRule

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.documentation import dag_documentation
from drawdown.airflow.schedules import asset_of, asset_of_partitions, schedule_of
from drawdown.airflow.task_arguments import of_tasks
from drawdown.airflow.tasks.audit_and_publish import AuditOperator, PublishOperator
from drawdown.airflow.tasks.cluster import job_behind
from drawdown.airflow.tasks.decide import AskOperator
from drawdown.airflow.tasks.drain import DrainOperator
from drawdown.airflow.tasks.partitions import PartitionsOperator
from drawdown.airflow.tasks.preflight import PreflightOperator
from drawdown.airflow.tasks.quarantine_replay import PARAMETER, quarantine_parameter
from drawdown.spec import Pipeline, Project

_START = datetime(2024, 1, 1, tzinfo=UTC)
"""Any day in the past: with catchup off the first run is the next due one."""

_RUN_TYPES: Any = ("scheduled", "manual", "operator_triggered", "asset_triggered", "asset_materialization")
"""All but ``backfill``, which would make a run per interval that all drain the same backlog.

As the REST API writes them: the DAG converts them to an enum that `airflow.sdk` does not export.
"""


def drain_dag(project: Project, dag_id: str, pipelines: Sequence[Pipeline]) -> DAG:
    """Return the DAG of a pipeline, or of a group whose pipelines share schedule and cluster."""
    root = str(project.root)
    names = [pipeline.name for pipeline in pipelines]
    first = pipelines[0]
    dag = DAG(
        dag_id,
        description=_description(dag_id, pipelines),
        schedule=schedule_of(first),
        start_date=_START,
        catchup=False,
        max_active_runs=1,
        allowed_run_types=_RUN_TYPES,
        tags=dag_tags(pipelines=pipelines),
        params={PARAMETER: quarantine_parameter(names)},
        doc_md=dag_documentation(project, pipelines),
        default_args={"owner": first.owner, **of_tasks(project.tasks_of(first.airflow))},
    )
    assets = [asset_of(name) for name in names]
    assets += [asset_of_partitions(each.name, each.partitions) for each in pipelines if each.partitions]
    preflight = PreflightOperator(
        task_id="preflight", project_root=root, pipelines=names, inlets=assets, dag=dag
    )
    drain = job_behind(preflight, project, pipelines, DrainOperator, dag)
    for pipeline in pipelines:
        _reports(dag, root, pipeline, drain, grouped=first.group is not None)
    return dag


def _reports(dag: DAG, root: str, pipeline: Pipeline, drain: BaseOperator, *, grouped: bool) -> None:
    common: dict[str, Any] = {
        "project_root": root,
        "pipeline": pipeline.name,
        "owner": pipeline.owner,
        "dag": dag,
    }
    if grouped:
        common["task_group"] = TaskGroup(pipeline.name, dag=dag, tooltip=pipeline.description)
    audit = AuditOperator(task_id="audit", trigger_rule=TriggerRule.ALL_DONE, **common)
    asset = [asset_of(pipeline.name)]
    rule = TriggerRule.NONE_FAILED
    publish = PublishOperator(task_id="publish", inlets=asset, outlets=asset, trigger_rule=rule, **common)
    audit.set_upstream(drain)
    publish.set_upstream(audit)
    if pipeline.partitions:
        asset = [asset_of_partitions(pipeline.name, pipeline.partitions)]
        partitions = PartitionsOperator(
            task_id="partitions", inlets=asset, outlets=asset, trigger_rule=rule, **common
        )
        partitions.set_upstream(publish)
    if pipeline.may_be_held:
        # ALL_DONE: even after a failed run a slice may be held without a request. A request that
        # cannot be made now is made by the next run.
        ask = AskOperator(task_id="ask", trigger_rule=TriggerRule.ALL_DONE, **{**common, "retries": 0})
        ask.set_upstream(audit)


def _description(dag_id: str, pipelines: Sequence[Pipeline]) -> str:
    if pipelines[0].group is None:
        return pipelines[0].description[:500]
    return f"{dag_id}: {', '.join(pipeline.name for pipeline in pipelines)}"[:500]
