"""Tasks that are one Spark application: `drain` drains, audits and publishes the DAG's pipelines."""

from __future__ import annotations

import json
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from drawdown.airflow.held_requests import where_to_decide
from drawdown.airflow.lineage_parent import lineage_parent
from drawdown.airflow.links import RunRecordLink
from drawdown.airflow.logins import look_up
from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.tasks.cluster import for_run
from drawdown.airflow.tasks.quarantine_replay import asked_replay
from drawdown.airflow.tasks.spark_submit_hook import DrainHook
from drawdown.airflow.tasks.task_failures import WorthRetrying, plainly
from drawdown.application.suspects import untried
from drawdown.credentials import CREDENTIALS, hand_over
from drawdown.errors import AuditFailed, RefusedError, SpecError, TransformError
from drawdown.launch.environment import PASSED, passed_by
from drawdown.launch.profile import on_cluster
from drawdown.launch.settings import Settings
from drawdown.launch.submit import RUN_FOLDER
from drawdown.plan.deaths import is_dead
from drawdown.processes.private_folder import private_folder
from drawdown.spec import Project, load_pipeline, load_project

if TYPE_CHECKING:
    from airflow.sdk import Context

_PERMANENT = {kind.exit_code for kind in (SpecError, RefusedError, TransformError, AuditFailed)}
"""Exit codes of errors for which a retry does not help."""


class JobOperator(SparkSubmitOperator):
    """Submits one of the jobs behind the stop wrapper.

    Everything that depends on the machine (jars, archive, logins) is looked up when the task runs, so that
    parsing is cheap and does not need it. So is the cluster: the one that was started for the DAG run, else
    one that lives as long as the task.

    Args:
        project_root: folder of the project.
        pipelines: they run in one application and share the cluster profile.
        cluster: name of the profile.
    """

    # What is prepared before the driver starts holds texts of specs and of requests: no template.
    template_fields = ()
    operator_extra_links = (RunRecordLink(),)
    job: ClassVar[str]
    after_a_stop: ClassVar[str]
    drains: ClassVar[bool] = False

    def __init__(self, *, project_root: str, pipelines: list[str], cluster: str, **kwargs: Any) -> None:
        super().__init__(
            # With its full path, every deployment into a new folder would be a new version of the DAG.
            application=f"jobs/{self.job}.py",
            name=f"drawdown.{'+'.join(pipelines)}"[:200],
            **kwargs,
        )
        self.project_root = project_root
        self.pipelines = pipelines
        self.cluster = cluster
        self._settings = Settings({})
        self._asked_to_stop = False

    @classmethod
    @abstractmethod
    def arguments(cls, pipelines: Sequence[str], context: Context) -> list[str]:
        """Return the job's arguments besides project and origin."""

    @plainly
    def execute(self, context: Context) -> None:
        """Run the job."""
        project = load_project(Path(self.project_root))
        run = for_run(project, context, self.pipelines, drains=self.drains)
        with on_cluster(project, self.cluster, run) as settings:
            self._apply(project, settings, context)

    def on_kill(self) -> None:
        """Ask the driver to stop: the stock method SIGKILLs spark-submit and leaves the driver alive."""
        self._asked_to_stop = True
        if isinstance(self._hook, DrainHook):
            self._hook.ask_to_stop()

    def _apply(self, project: Project, settings: Settings, context: Context) -> None:
        """Run one application for all pipelines."""
        self._run_application(project, settings, context, self.pipelines)

    def _run_application(
        self, project: Project, settings: Settings, context: Context, pipelines: Sequence[str]
    ) -> None:
        folder = _run_folder(project)
        self._hook = None  # the provider would submit the application of before again
        try:
            self._prepare(project, folder, settings, context, pipelines)
            self._submit(context)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _prepare(
        self,
        project: Project,
        folder: Path,
        settings: Settings,
        context: Context,
        pipelines: Sequence[str],
    ) -> None:
        self._settings = settings
        self.application = f"{self.project_root}/jobs/{self.job}.py"
        self.conf = {key: value for key, value in settings.conf.items() if key != "spark.master"}
        self.application_args = [
            "--project", self.project_root,
            *self.arguments(pipelines, context),
            "--origin", json.dumps(origin_of(context) | lineage_parent(project, context)),
        ]  # fmt: skip
        self.env_vars = {RUN_FOLDER: str(folder), PASSED: ",".join(passed_by(project))}
        if logins := look_up(project, [load_pipeline(project, name) for name in self.pipelines]):
            self.env_vars[CREDENTIALS] = str(hand_over(logins, folder))

    def _submit(self, context: Context) -> None:
        try:
            super().execute(context)
        except AirflowException as error:
            # The provider's exception contains the whole command; the job's error is in its output.
            hook = self._hook
            if not isinstance(hook, DrainHook) or hook.exit_code is None:
                raise WorthRetrying(str(error)) from None
            said = "\n".join(hook.output.errors) or _without_an_error(hook)
            if self._asked_to_stop or hook.exit_code not in _PERMANENT:
                raise WorthRetrying(said) from None
            waiting = self._where_to_decide() if hook.exit_code == AuditFailed.exit_code else []
            said = "\n".join([f"Permanent error, not retried: {said}", *waiting])
            raise AirflowFailException(said) from None
        if self._asked_to_stop:
            raise WorthRetrying(f"the {self.job} was asked to stop: {self.after_a_stop}")

    def _where_to_decide(self) -> list[str]:
        with open_metastore(self.project_root) as metastore:
            return [each for name in self.pipelines for each in where_to_decide(metastore, name)]

    def _get_hook(self) -> DrainHook:
        return DrainHook(
            settings=self._settings,
            conf=self.conf,
            name=self.name,
            application_args=self.application_args,
            environment=self.env_vars,
        )


class DrainOperator(JobOperator):
    """Submits jobs/drain.py for the pipelines of a DAG, or for the replay of quarantined rows of one."""

    job = "drain"
    drains = True
    after_a_stop = "the next one continues where it stopped"

    def _apply(self, project: Project, settings: Settings, context: Context) -> None:
        """Run one application for all pipelines; another for those that died with its JVM and others.

        Each of them then runs alone, behind those before it: only the one that ends the JVM again fails.
        """
        names = list(self.pipelines)
        while True:
            try:
                return self._run_application(project, settings, context, names)
            except WorthRetrying as failure:
                left = [] if self._asked_to_stop else self._left_by_a_dead_application(names, context)
                if not left:
                    raise
                said = ", ".join(left)
                self.log.warning("%s\nThe application died: another one drains %s", failure, said)
                names = left

    def _left_by_a_dead_application(self, names: Sequence[str], context: Context) -> list[str]:
        """Return the pipelines that have not ended in this try, if one of them died and did not run alone."""
        origin = origin_of(context)
        of_try = {key: origin[key] for key in ("dag_id", "dag_run_id", "task_id", "try_number")}
        with open_metastore(self.project_root) as metastore:
            found = {run.pipeline: run for run in reversed(metastore.runs_of_origin(of_try))}
            left = [name for name in names if name not in found or is_dead(metastore, found[name])]
            return left if untried(metastore, left) else []

    @classmethod
    def arguments(cls, pipelines: Sequence[str], context: Context) -> list[str]:
        asked = asked_replay(context, pipelines)
        if asked is not None:
            return ["--pipeline", asked.pipeline, *asked.options]
        return [part for name in pipelines for part in ("--pipeline", name)]


def _without_an_error(hook: DrainHook) -> str:
    return f"the job ended with exit code {hook.exit_code}; its last lines:\n{hook.output.last_lines}"


def _run_folder(project: Project) -> Path:
    """Create a folder of mode 0700 for what an application gets; the application's guard removes it too."""
    runs = private_folder(project.state_dir / "runs")
    return Path(tempfile.mkdtemp(prefix="run-", dir=runs))


def origin_of(context: Context) -> dict[str, Any]:
    """Return what started the run, for the run records."""
    ti, dag_run = context["ti"], context["dag_run"]
    logical_date = dag_run.logical_date
    return {
        "dag_id": ti.dag_id,
        "dag_run_id": ti.run_id,
        "task_id": ti.task_id,
        "try_number": ti.try_number,
        "run_type": str(getattr(dag_run.run_type, "value", dag_run.run_type)),
        "logical_date": logical_date.isoformat() if logical_date else None,
    }
