"""The task `preflight`: find out without Spark whether there is work; if not, skip everything after it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, SkipMixin

from drawdown.airflow.logins import look_up
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.asset_events import news_of
from drawdown.airflow.tasks.audit_and_publish import PublishOperator
from drawdown.airflow.tasks.decide import AskOperator
from drawdown.airflow.tasks.drain import origin_of
from drawdown.airflow.tasks.partitions import PartitionsOperator, untold_partitions
from drawdown.airflow.tasks.quarantine_replay import asked_replay
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.application.unstarted import note_unstarted
from drawdown.credentials import with_logins
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.spec import Project, load_pipeline, load_project
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.plan.preflight import Preflight


class PreflightOperator(BaseOperator, SkipMixin):
    """Checks every pipeline of the DAG; skips all later tasks when none has work.

    Its inlets must be the pipelines' assets.

    Returns:
        Per pipeline ``{"work": bool, "reasons": [text], "backlog": {source: {...}}}``, as XCom.
    """

    def __init__(self, *, project_root: str, pipelines: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipelines = pipelines

    @plainly
    def execute(self, context: Context) -> dict[str, Any]:
        project = load_project(Path(self.project_root))
        self._name_red_clusters(project)
        asked = asked_replay(context, self.pipelines)
        if asked is not None:
            looked = self._look_for_replay(project, asked.pipeline)
        else:
            looked = {name: self._look(project, name) for name in self.pipelines}
        found = {name: _as_xcom(answer) for name, answer in looked.items()}
        for name, answer in looked.items():
            self.log.info("%s: %s", name, "; ".join(answer.reasons) or "nothing new")
        if not any(answer.work and answer.error is None for answer in looked.values()):
            # Both ways to end below raise exceptions, so the result is pushed first.
            context["ti"].xcom_push("return_value", found)
            self._refuse_missing(project, looked, context)
            self.log.info("Nothing to do: no Spark is started")
            # Skip them whatever their trigger rule: audit would run even after a failed drain.
            watching = self._watching(project, context)
            after = self.get_flat_relatives(upstream=False)
            self.skip(context["ti"], [task for task in after if task.task_id not in watching])
        return found

    def _name_red_clusters(self, project: Project) -> None:
        """Log clusters that are not known to be gone; `drawdown__freshness` ends them, no preflight waits."""
        from drawdown.fleet.started_clusters import red_clusters

        try:
            with Metastore.open(project.metastore_url) as metastore:
                for cluster in red_clusters(metastore):
                    self.log.warning("%s", cluster.sentence)
        except DrawdownError as error:
            self.log.debug("overdue clusters were not looked for: %s", error)

    def _watching(self, project: Project, context: Context) -> set[str]:
        """Return the ids of tasks with work although nothing is new: held slices, unreported asset events."""
        events = context["inlet_events"]
        with Metastore.open(project.metastore_url) as metastore:
            held = {name for name in self.pipelines if metastore.held_slices(name)}
            unreported = {n for n in self.pipelines if news_of(metastore, n, events[asset_of(n)]).rows}
        untold = self._untold(project, context)
        return {
            task.task_id
            for task in self.get_flat_relatives(upstream=False)
            if (isinstance(task, AskOperator) and task.pipeline in held)
            or (isinstance(task, PublishOperator) and task.pipeline in unreported)
            or (isinstance(task, PartitionsOperator) and task.pipeline in untold)
        }

    def _untold(self, project: Project, context: Context) -> set[str]:
        """Return the pipelines with a complete day or hour that no event has told."""
        untold = set()
        for name in self.pipelines:
            try:
                if untold_partitions(project, name, context):
                    untold.add(name)
            except DrawdownError as error:
                self.log.warning("%s: it is not known which days or hours are complete: %s", name, error)
        return untold

    def _refuse_missing(self, project: Project, looked: Mapping[str, Preflight], context: Context) -> None:
        """Raise the first error that prevents a start of Spark, after a run record is written for each."""
        errors = {name: answer.error for name, answer in looked.items() if answer.error is not None}
        with Metastore.open(project.metastore_url) as metastore:
            for name, error in errors.items():
                note_unstarted(metastore, name, origin_of(context), error=error)
        for error in errors.values():
            raise error

    def _look_for_replay(self, project: Project, name: str) -> dict[str, Preflight]:
        """Return work for the one pipeline. Raises RefusedError ``quarantine.none``."""
        from drawdown.plan.preflight import Preflight
        from drawdown.quarantine.row_states import require_table

        pipeline = load_pipeline(project, name)
        with Workspace.open(with_logins(project, look_up(project, [pipeline]))) as workspace:
            require_table(workspace, pipeline)
        looked = {each: Preflight(False, [f"this run replays rows of {name}"]) for each in self.pipelines}
        return looked | {name: Preflight(True, ["quarantined rows are to be replayed"])}

    def _look(self, project: Project, name: str) -> Preflight:
        """Run the preflight of a pipeline; an error counts as work: the drain then says what is wrong."""
        from drawdown.observe.record import record, record_backlog
        from drawdown.plan.preflight import Preflight, preflight
        from drawdown.plan.version_in_use import in_use

        try:
            pipeline = load_pipeline(project, name)
            project = with_logins(project, look_up(project, [pipeline]))
            with Workspace.open(project) as workspace:
                found = preflight(workspace, in_use(workspace, pipeline))
                record_backlog(workspace, name, found.backlog)
                record(workspace, [name])
                return found
        except DrawdownError as error:
            return Preflight(True, [f"in doubt: {error.what}"])


def _as_xcom(answer: Preflight) -> dict[str, Any]:
    return {"work": answer.work, "reasons": answer.reasons, "backlog": answer.backlog}
