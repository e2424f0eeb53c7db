"""The task `preflight`: without Spark, is there anything to do? If not, everything after it is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk import BaseOperator

from drawdown.airflow.logins import look_up
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.asset_events import news_of
from drawdown.airflow.tasks.audit_and_publish import PublishOperator
from drawdown.airflow.tasks.decide import AskOperator
from drawdown.credentials import with_logins
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.spec import Project, load_pipeline, load_project
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context


class PreflightOperator(BaseOperator, SkipMixin):
    """Looks at every pipeline of the DAG; skips all that follows when none has anything to do.

    Its inlets must be their assets.

    Returns:
        Per pipeline ``{"work": bool, "reasons": [text], "backlog": {source: {...}}}``, as XCom.
    """

    def __init__(self, *, project_root: str, pipelines: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root
        self.pipelines = pipelines

    def execute(self, context: Context) -> dict[str, Any]:
        project = load_project(Path(self.project_root))
        found = {name: self._look(project, name) for name in self.pipelines}
        for name, answer in found.items():
            self.log.info("%s: %s", name, "; ".join(answer["reasons"]) or "nothing new")
        if not any(answer["work"] for answer in found.values()):
            self.log.info("Nothing to do: no Spark is started")
            # skip() ends the task by an exception, so the answer is pushed before.
            context["ti"].xcom_push("return_value", found)
            # Whatever their trigger rule: audit runs also after a drain that failed.
            watching = self._watching(project, context)
            after = self.get_flat_relatives(upstream=False)
            self.skip(context["ti"], [task for task in after if task.task_id not in watching])
        return found

    def _watching(self, project: Project, context: Context) -> set[str]:
        """Tasks that have something to do although nothing is new: held slices, asset events."""
        events = context["inlet_events"]
        with Metastore.open(project.metastore_url) as metastore:
            held = {name for name in self.pipelines if metastore.held_slices(name)}
            unreported = {n for n in self.pipelines if news_of(metastore, n, events[asset_of(n)]).rows}
        return {
            task.task_id
            for task in self.get_flat_relatives(upstream=False)
            if (isinstance(task, AskOperator) and task.pipeline in held)
            or (isinstance(task, PublishOperator) and task.pipeline in unreported)
        }

    def _look(self, project: Project, name: str) -> dict[str, Any]:
        """Any doubt is work: the drain then says what is wrong."""
        from drawdown.plan.preflight import preflight
        from drawdown.plan.version_in_use import in_use

        try:
            pipeline = load_pipeline(project, name)
            project = with_logins(project, look_up(project, [pipeline]))
            with Workspace.open(project) as workspace:
                answer = preflight(workspace, in_use(workspace, pipeline))
        except DrawdownError as error:
            return {"work": True, "reasons": [f"in doubt: {error.what}"], "backlog": {}}
        return {"work": answer.work, "reasons": answer.reasons, "backlog": answer.backlog}
