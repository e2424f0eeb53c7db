"""The tasks of a rebuild: `preflight`, `rebuild`, `approve`, where a person decides, and `swap`.

`approve` waits in Airflow's *Required Actions*, in a state that takes no worker slot, with the comparison in
its text. What was decided on the command line meanwhile stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import AssetAlias, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from drawdown.airflow.documentation import rebuild_body
from drawdown.airflow.drain import JobOperator
from drawdown.airflow.logins import look_up
from drawdown.airflow.reasoned_request import ReasonedRequest
from drawdown.airflow.records import open_metastore
from drawdown.airflow.schedules import asset_of
from drawdown.application import new_run_id
from drawdown.credentials import with_logins
from drawdown.errors import DrawdownError
from drawdown.metastore import this_process
from drawdown.plan.rebuild import wanted
from drawdown.publishing.rebuild import KINDS, Asked, end_rebuild
from drawdown.spec import load_project

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Checkpoint, Run

REBUILT = AssetAlias("drawdown.rebuilt")
"""Outlet of `swap`: stands for the asset of whichever pipeline was rebuilt."""

PIPELINE = "pipeline"
"""The parameter of the DAG: whose rebuild it is."""

_ENDINGS_LOOKED_THROUGH = 1_000


class RebuildPreflightOperator(BaseOperator):
    """Fails with the reason when no rebuild can be made, as far as it is known without Spark."""

    def __init__(self, *, project_root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root

    def execute(self, context: Context) -> None:
        from drawdown.publishing.rebuild_refusals import refuse_rebuild

        try:
            project = load_project(Path(self.project_root))
            pipeline = wanted(project, _name(context))
            project = with_logins(project, look_up(project, [pipeline]))
            with open_metastore(self.project_root) as metastore:
                refuse_rebuild(project, pipeline, metastore)
        except DrawdownError as error:
            raise _of_airflow(error) from None


class RebuildOperator(JobOperator):
    """Submits jobs/rebuild.py for the pipeline that the run is about."""

    job = "rebuild"
    after_a_stop = "the next one goes on where it stopped"

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(pipelines=[], cluster="", **kwargs)

    def execute(self, context: Context) -> None:
        self.pipelines, self.name = [_name(context)], f"drawdown.{_name(context)}"
        try:
            self.cluster = wanted(load_project(Path(self.project_root)), _name(context)).cluster
        except DrawdownError as error:
            raise AirflowFailException(str(error)) from None
        super().execute(context)

    @classmethod
    def arguments(cls, pipelines: Sequence[str], context: Context) -> list[str]:
        return ["--pipeline", *pipelines]


class ApproveOperator(ReasonedRequest):
    """Asks whether a rebuild is to take the place of what is live."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject="Swap a rebuild in?", options=["approve", "reject"], **kwargs)

    def execute(self, context: Context) -> None:
        name = _name(context)
        shadow = self._shadow(name)
        if shadow is None:
            self.log.info("there is no rebuild of %s any more", name)
            return
        self.subject = f"{name}: let generation {shadow.generation} take the place of what is live?"
        self.body = rebuild_body(name, shadow)
        super().execute(context)

    def refuse_late_answer(self, context: Context) -> None:
        if self._shadow(_name(context)) is None:
            raise AirflowFailException("this answer came too late: the rebuild was ended by command")

    def _shadow(self, name: str) -> Checkpoint | None:
        with open_metastore(self.project_root) as metastore:
            return metastore.of_rebuilds.active_checkpoint(name)


class SwapOperator(BaseOperator):
    """Carries the answer out, without Spark, and updates the pipeline's asset after a swap.

    While a drain holds the lease it waits by retries. Skipped when nothing became visible.
    Its outlet must be REBUILT.
    """

    def __init__(self, *, project_root: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.project_root = project_root

    def execute(self, context: Context) -> dict[str, Any]:
        name, chosen = _name(context), context["ti"].xcom_pull(task_ids="approve")
        if not chosen:
            raise AirflowSkipException(f"{name}: its rebuild was ended by command")
        try:
            with open_metastore(self.project_root) as metastore:
                run = self._done(metastore, name, context) or self._end(metastore, name, chosen, context)
        except DrawdownError as error:
            raise _of_airflow(error) from None
        if run.kind != KINDS["approve"]:
            raise AirflowSkipException(f"{name}: {run.stop_reason}")
        event = {
            "pipeline": name,
            "run_id": run.run_id,
            "generation": run.generation,
            "rebuilt": True,
            "by": run.origin["by"],
            "why": run.origin["why"],
        }
        context["outlet_events"][REBUILT].add(asset_of(name), extra=event)
        self.log.info("%s: %s", name, run.stop_reason)
        return event

    def _end(self, metastore: Metastore, name: str, chosen: dict[str, str], context: Context) -> Run:
        project, ti = load_project(Path(self.project_root)), context["ti"]
        asked = Asked(
            "approve" if chosen["choice"] == "approve" else "discard",
            new_run_id(),
            this_process(),
            chosen["by"],
            chosen["why"],
            {"dag_id": ti.dag_id, "dag_run_id": ti.run_id},
        )
        return end_rebuild(metastore, project, wanted(project, name), asked)

    def _done(self, metastore: Metastore, name: str, context: Context) -> Run | None:
        """What an earlier try has done, that died after it."""
        for run in metastore.runs(name, limit=_ENDINGS_LOOKED_THROUGH):
            here = run.origin.get("dag_run_id") == context["ti"].run_id
            if here and run.kind in KINDS.values() and run.state == "succeeded":
                return run
        return None


def _name(context: Context) -> str:
    name = str(context["params"][PIPELINE])
    if not name:
        raise AirflowFailException("no pipeline: name it when the DAG is triggered")
    return name


def _of_airflow(error: DrawdownError) -> Exception:
    """What is transient is tried again."""
    return (AirflowException if error.transient else AirflowFailException)(str(error))
