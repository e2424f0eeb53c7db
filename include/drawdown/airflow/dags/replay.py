"""The DAG `<name>__replay`: preflight → replay → audit → publish, for one event-time interval a run.

Airflow's own backfills create its runs: the dialog, `airflow backfill create`, the REST API. A run replaces
its data interval; several runs of one DAG may run at once, and beside drains.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowSkipException

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.logins import look_up
from drawdown.airflow.replay_timetable import ReplayTimetable
from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.task_arguments import of_tasks
from drawdown.airflow.tasks.asset_events import is_reported
from drawdown.airflow.tasks.audit_and_publish import AuditOperator, RecordOperator
from drawdown.airflow.tasks.cluster import job_behind
from drawdown.airflow.tasks.drain import JobOperator
from drawdown.airflow.tasks.project_operators import PipelineOperator
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.credentials import with_logins
from drawdown.errors import SpecError
from drawdown.spec import Pipeline, Project, load_pipeline, load_project
from drawdown.spec.replay import Replay
from drawdown.values.dag_ids import REPLAY_SUFFIX, replay_dag_id
from drawdown.values.interval import Interval, shown
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run

_START = datetime(1970, 1, 1, tzinfo=UTC)

_DOCUMENTATION = """
### Replay of {name}
A run computes one interval of {length} of `{sink}` again, from the sources, audits its rows, and puts them
in place of the present rows: in one commit, beside the drains of `{drains}`. The live checkpoint is not
touched, and the same run again gives the same table. It reads
{lookback} before the interval and {lookahead} behind it.

- **Possible now** are intervals that end before the watermark of what is published, by {lookahead} or more;
  later ones fail in `preflight`. `drawdown backfill {name}` says up to when. While a
  slice is held, what was drained after it does not count.
- **Backfill**: *Trigger* → *Backfill*, from the first day to the last one; or
  `airflow backfill create --dag-id {name}{suffix} --from-date 2024-01-01 --to-date 2024-01-31`. Runs that are
  there already are left alone unless *reprocess* says otherwise. Nothing is scheduled by itself.
- A single run by hand replaces the interval that its logical date is in.
- **Refused**, with the reason, are also intervals whose files or offsets are gone, and state that reaches
  further than lookback and lookahead.
- Pipelines that read `{sink}` are named in the run record; they are replayed only when you start it.
- Without Airflow: `drawdown backfill {name} --from 2024-01-01 --to 2024-02-01`.
"""


def replay_dag(project: Project, pipeline: Pipeline) -> DAG:
    """Return the DAG of a pipeline with `replay:`."""
    assert pipeline.replay is not None
    dag = DAG(
        replay_dag_id(pipeline.name),
        description=f"Replays intervals of {pipeline.name}: made by backfills",
        schedule=ReplayTimetable(pipeline.replay.interval.delta),
        start_date=_START,
        catchup=False,
        # Nothing runs by itself, and Airflow runs no backfill of a paused DAG.
        is_paused_upon_creation=False,
        tags=dag_tags("replay", pipelines=[pipeline]),
        params={"possible": _possible(pipeline.name, pipeline.replay)},
        doc_md=_DOCUMENTATION.format(
            name=pipeline.name,
            suffix=REPLAY_SUFFIX,
            length=pipeline.replay.interval,
            lookback=pipeline.replay.lookback,
            lookahead=pipeline.replay.lookahead,
            sink=pipeline.sink.target,
            drains=pipeline.group or pipeline.name,
        ),
        default_args={"owner": pipeline.owner, **of_tasks(project.tasks_of(pipeline.airflow))},
    )
    common: dict[str, Any] = {"project_root": str(project.root), "dag": dag}
    preflight = ReplayPreflightOperator(task_id="preflight", pipeline=pipeline.name, **common)
    replay = job_behind(preflight, project, [pipeline], ReplayOperator, dag)
    audit = AuditOperator(task_id="audit", pipeline=pipeline.name, **common)
    audit.set_upstream(replay)
    asset = [asset_of(pipeline.name)]
    publish = ReplayedOperator(
        task_id="publish", pipeline=pipeline.name, inlets=asset, outlets=asset, **common
    )
    publish.set_upstream(audit)
    return dag


def _possible(name: str, replay: Replay) -> Param:
    """Return a field that only informs in the dialogs of *Trigger* and *Backfill*; it takes no text.

    Airflow hides a field with a ``const``, and starts nothing while a field that is no ``null`` is empty.
    """
    before = f"{replay.lookahead} or more before" if replay.lookahead.delta else "before"
    return Param(
        None,
        type=["null", "string"],
        maxLength=0,
        title="Which intervals are possible now",
        description=f"Those that end {before} the watermark of what is published."
        f" `drawdown backfill {name}` says up to when. Leave this field empty.",
    )


def interval_of(context: Context) -> Interval:
    """Return the data interval of a run."""
    start, end = context["data_interval_start"], context["data_interval_end"]
    if start is None or end is None:
        raise SpecError(
            "replay.interval",
            "this run has no data interval: it was triggered without a logical date",
            do="trigger it with a logical date in the interval, or make a backfill",
        )
    return Interval.between(start, end)


class ReplayPreflightOperator(PipelineOperator):
    """Fails with the reason when the interval cannot be replayed, as far as it is known without Spark."""

    @plainly
    def execute(self, context: Context) -> None:
        from drawdown.plan.version_in_use import in_use
        from drawdown.replay.publish import refuse_replay

        project = load_project(Path(self.project_root))
        pipeline = load_pipeline(project, self.pipeline)
        project = with_logins(project, look_up(project, [pipeline]))
        with open_metastore(self.project_root) as metastore:
            refuse_replay(
                Workspace(project, metastore),
                in_use(Workspace(project, metastore), pipeline),
                interval_of(context),
            )


class ReplayOperator(JobOperator):
    """Submits jobs/replay.py for the run's data interval."""

    job = "replay"
    after_a_stop = "the same run again gives the same table"

    @classmethod
    def arguments(cls, pipelines: Sequence[str], context: Context) -> list[str]:
        interval = interval_of(context)
        return ["--pipeline", *pipelines, "--from", shown(interval.start), "--to", shown(interval.end)]


class ReplayedOperator(RecordOperator):
    """Updates the pipeline's asset: the event says which interval was replaced, and what else could be.

    Its inlet and its outlet must be that asset.
    """

    def report(self, context: Context, metastore: Metastore, runs: Sequence[Run]) -> dict[str, Any]:
        run = next((run for run in runs if run.counts.published or run.state == "succeeded"), None)
        if run is None:
            raise AirflowSkipException(f"{self.pipeline}: nothing was replayed")
        if is_reported(run, context["inlet_events"][asset_of(self.pipeline)]):
            raise AirflowSkipException(f"{self.pipeline}: an earlier event of its asset covers {run.run_id}")
        event = {
            "pipeline": self.pipeline,
            "run_id": run.run_id,
            "generation": run.generation,
            "replayed": run.origin["interval"],
            "rows": run.counts.published,
            "verdict": run.verdict,
            "offers": [notice["do"] for notice in run.notices if notice["id"] == "replay.downstream"],
        }
        context["outlet_events"][asset_of(self.pipeline)].extra.update(event)
        for offer in event["offers"]:
            self.log.info("%s reads the replaced rows; to replay it, too: %s", self.pipeline, offer)
        return event
