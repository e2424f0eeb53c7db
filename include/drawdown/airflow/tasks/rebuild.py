"""The tasks of a rebuild: `preflight`, `rebuild`, `approve`, where a person decides, and `swap`.

`approve` waits in Airflow's *Required Actions*, in a state that takes no worker slot, with the comparison in
its text. A decision made on the command line in the meantime stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.documentation import rebuild_body
from drawdown.airflow.lineage_parent import lineage_parent
from drawdown.airflow.logins import look_up
from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.answers import Answer, kept
from drawdown.airflow.tasks.asset_events import is_reported
from drawdown.airflow.tasks.drain import JobOperator
from drawdown.airflow.tasks.project_operators import ProjectOperator
from drawdown.airflow.tasks.reasoned_request import ReasonedRequest
from drawdown.airflow.tasks.rescheduled import RescheduledOperator
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.application import new_run_id
from drawdown.credentials import with_logins
from drawdown.errors import RefusedError
from drawdown.metastore import this_process
from drawdown.observe.lineage.run_events import told_at_its_end
from drawdown.plan.version_in_use import wanted
from drawdown.rebuild.publish import KINDS, RebuildDecision, end_rebuild
from drawdown.rebuild.refusals import rebuild_id, refuse_another
from drawdown.spec import load_project
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Checkpoint, Run

REBUILT = AssetAlias("drawdown.rebuilt")
"""Outlet of `swap`, in place of the asset of the pipeline that was rebuilt."""

PIPELINE = "pipeline"
"""The parameter of the DAG: the pipeline to rebuild."""


class RebuildPreflightOperator(ProjectOperator):
    """Fails with the reason when a rebuild cannot be made, as far as that is known without Spark."""

    @plainly
    def execute(self, context: Context) -> None:
        from drawdown.rebuild.refusals import refuse_rebuild

        project = load_project(Path(self.project_root))
        pipeline = wanted(project, _name(context))
        project = with_logins(project, look_up(project, [pipeline]))
        with open_metastore(self.project_root) as metastore:
            refuse_rebuild(Workspace(project, metastore), pipeline)


class RebuildOperator(JobOperator):
    """Submits jobs/rebuild.py for the pipeline that the run names."""

    job = "rebuild"
    after_a_stop = "the next one continues where it stopped"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(pipelines=[], cluster="", **kwargs)

    @plainly
    def execute(self, context: Context) -> None:
        self.pipelines, self.name = [_name(context)], f"drawdown.{_name(context)}"
        self.cluster = wanted(load_project(Path(self.project_root)), _name(context)).cluster
        super().execute(context)

    @classmethod
    def arguments(cls, pipelines: Sequence[str], context: Context) -> list[str]:
        return ["--pipeline", *pipelines]


class ApproveOperator(ReasonedRequest):
    """Ask whether a rebuild replaces the live output.

    Airflow keeps a request as it was first shown, even if its task is cleared. So each choice, and with it
    the answer, names the rebuild that was shown.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject="Swap a rebuild in?", options=["approve", "reject"], **kwargs)

    @plainly
    def execute(self, context: Context) -> None:
        name = _name(context)
        shadow = self._shadow(name)
        if shadow is None:
            self.log.info("the rebuild of %s no longer exists", name)
            return
        self.subject = f"Replace the live output of {name} with the rebuild (generation {shadow.generation})?"
        self.body = rebuild_body(name, shadow)
        self.options = [f"{choice} {rebuild_id(shadow)}" for choice in self.options]
        self.ask(context)

    def asked_about(self, context: Context) -> str:
        return _name(context)

    def validate_chosen_options(self, chosen_options: list[str]) -> None:
        super().validate_chosen_options([_choice_about(chosen)[0] for chosen in chosen_options])

    def refuse_late_answer(self, context: Context, chosen: str) -> None:
        shadow = self._shadow(_name(context))
        if shadow is None:
            raise AirflowFailException("this answer came too late: the rebuild was ended by command")
        try:
            refuse_another(shadow, _choice_about(chosen)[1])
        except RefusedError as error:
            raise AirflowFailException(
                f"this answer came too late and changes nothing: {error}\n"
                "or trigger this DAG again: it goes on with that rebuild and asks about it"
            ) from None

    def _shadow(self, name: str) -> Checkpoint | None:
        with open_metastore(self.project_root) as metastore:
            return metastore.of_rebuilds.active_checkpoint(name)


class SwapOperator(RescheduledOperator):
    """Carries the answer out, without Spark, and updates the pipeline's asset after a swap.

    It waits while a drain holds the lease. It is skipped when the rebuild was ended in another way.
    Its inlet and its outlet must be REBUILT.
    """

    def carry_out(self, context: Context) -> dict[str, Any]:
        from drawdown.observe.record import recording

        name, record = _name(context), context["ti"].xcom_pull(task_ids="approve")
        if not record:
            raise AirflowSkipException(f"{name}: its rebuild was ended by command")
        with open_metastore(self.project_root) as metastore:
            asked = self._asked(kept(metastore, name, record, context), context)
            run = self._done(metastore, name, asked)
            if run is None:
                project = load_project(Path(self.project_root))
                pipeline = wanted(project, name)
                project = with_logins(project, look_up(project, [pipeline]))
                workspace = Workspace(project, metastore)
                parent = lineage_parent(project, context)
                with told_at_its_end(workspace, pipeline, asked.run_id, parent), recording(workspace, name):
                    run = end_rebuild(workspace, pipeline, asked)
        self.log.info("%s: %s, by %s: %s", name, run.stop_reason, run.origin["by"], run.origin["why"])
        if run.kind != KINDS["approve"]:
            return {"pipeline": name, "run_id": run.run_id, "rebuilt": False}
        if is_reported(run, context["inlet_events"][REBUILT]):
            raise AirflowSkipException(f"{name}: an earlier event of its asset covers {run.run_id}")
        event = {
            "pipeline": name,
            "run_id": run.run_id,
            "generation": run.generation,
            "rebuilt": True,
            "by": run.origin["by"],
            "why": run.origin["why"],
        }
        context["outlet_events"][REBUILT].add(asset_of(name), extra=event)
        return event

    def _asked(self, chosen: Answer, context: Context) -> RebuildDecision:
        ti = context["ti"]
        choice, about = _choice_about(chosen.choice)
        return RebuildDecision(
            "approve" if choice == "approve" else "discard",
            new_run_id(),
            this_process(),
            chosen.by,
            chosen.why,
            {"dag_id": ti.dag_id, "dag_run_id": ti.run_id, "about": about},
            about,
        )

    def _done(self, metastore: Metastore, name: str, asked: RebuildDecision) -> Run | None:
        """Return what an earlier try did before it died; a cleared run may be about another rebuild."""
        found = metastore.runs_of_origin(asked.origin, pipeline=name, kinds=KINDS.values())
        return next((run for run in found if run.state == "succeeded"), None)


def _choice_about(chosen: str) -> tuple[str, str | None]:
    """Return what was chosen, and about which rebuild; None for requests of older versions."""
    choice, _, about = chosen.partition(" ")
    return choice, about or None


def _name(context: Context) -> str:
    name = str(context["params"][PIPELINE])
    if not name:
        raise AirflowFailException("no pipeline: name it when the DAG is triggered")
    return name
