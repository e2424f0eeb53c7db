"""The tasks `record-figures` and `send-alerts` of `drawdown__freshness`, for all pipelines at once.

Their names have a dash, which no pipeline's name has: each pipeline with `freshness:` is a task beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.links import dag_page
from drawdown.airflow.logins import password_of
from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.tasks.project_operators import ProjectOperator
from drawdown.airflow.tasks.task_failures import WorthRetrying, plainly
from drawdown.errors import DrawdownError
from drawdown.spec import Project, load_pipeline, load_project, pipeline_names
from drawdown.values.dag_ids import DECIDE, FRESHNESS, REBUILD
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore.records import Announcement
    from drawdown.observe.alerts.announce import Link
    from drawdown.observe.alerts.receivers import AlertReceiver

RECORD = "record-figures"
SEND = "send-alerts"


class FiguresOperator(ProjectOperator):
    """Records the figures of all pipelines: pages, metrics and alerts show what was recorded last."""

    @plainly
    def execute(self, context: Context) -> None:
        from drawdown.observe.record import record

        project = load_project(Path(self.project_root))
        with open_metastore(self.project_root) as metastore:
            record(Workspace(project, metastore), pipeline_names(project))


class AlertsOperator(ProjectOperator):
    """Tells the targets of `alert_targets:` what has changed; fails while one of them cannot be reached.

    It runs whatever became of `record-figures`, and fails with it: Airflow judges a run by its last tasks.
    """

    @plainly
    def execute(self, context: Context) -> None:
        self.tell()
        ti = context["ti"]
        states = ti.get_task_states(ti.dag_id, task_ids=[RECORD], run_ids=[ti.run_id])
        if "failed" in states.get(ti.run_id, {}).values():
            raise AirflowFailException(f"{RECORD} failed: what was sent is what was recorded before")

    def tell(self) -> None:
        """Send what is due. Raises WorthRetrying."""
        from drawdown.observe.alerts.announce import announce
        from drawdown.observe.alerts.changes import note_changes

        project = load_project(Path(self.project_root))
        if not project.alert_targets:
            self.log.info("no `alert_targets:` in include/project.yaml: nobody is told")
            return
        with open_metastore(self.project_root) as metastore:
            due = note_changes(Workspace(project, metastore))
            found = {name: _target(project, name) for name in {each.target for each in due}}
            errors = [each for each in found.values() if isinstance(each, DrawdownError)]
            targets = {name: each for name, each in found.items() if not isinstance(each, DrawdownError)}
            told = announce(metastore, (d for d in due if d.target in targets), targets, _link(project))
        self.log.info("changes: %d, messages: %d", len(due), told.sent)
        if errors := [*errors, *told.errors]:
            raise WorthRetrying("\n".join(str(error) for error in errors))


def _target(project: Project, name: str) -> AlertReceiver | DrawdownError:
    from drawdown.observe.alerts.receivers import AlertReceiver

    entry = project.alert_targets[name]
    try:
        place = f"alert_targets.{name}"
        return AlertReceiver(name, password_of(place, entry.connection) if entry.connection else entry.url)
    except DrawdownError as error:
        return error


def _link(project: Project) -> Link:
    from drawdown.observe.alerts.clusters import CLUSTER

    def link(about: Announcement) -> str:
        if about.alert == "held":
            return dag_page(DECIDE)
        if about.alert == CLUSTER:
            return dag_page(FRESHNESS)
        if about.alert == "rebuild":
            return dag_page(REBUILD)
        try:
            group = load_pipeline(project, about.pipeline).group
        except DrawdownError:
            group = None
        return dag_page(group or about.pipeline)

    return link
