"""The tasks by which a person decides about a held slice: `ask` in the drain's DAG, `choose` and `decide`.

`ask` starts the DAG `drawdown__decide` once for each held slice. There `choose` waits for an answer in
Airflow's *Required Actions*, in a state that takes no worker slot; `decide` carries it out, without Spark.
What was decided on the command line meanwhile stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.documentation import request_body
from drawdown.airflow.logins import look_up
from drawdown.airflow.records import decision_event, open_metastore
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.answers import Answer, kept
from drawdown.airflow.tasks.asset_events import is_reported
from drawdown.airflow.tasks.reasoned_request import ReasonedRequest
from drawdown.airflow.tasks.rescheduled import RescheduledOperator
from drawdown.application import new_run_id
from drawdown.credentials import with_logins
from drawdown.errors import AuditFailed
from drawdown.held.deadlines import refuse_overdue, terms
from drawdown.held.decide import Decision, decide, decided_text, decision_about
from drawdown.metastore import this_process
from drawdown.plan.version_in_use import in_use
from drawdown.spec import load_pipeline, load_project
from drawdown.values.dag_ids import DECIDE
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run


DECIDED = AssetAlias("drawdown.decided")
"""Outlet of `decide`: stands for the asset of whichever pipeline a decision was about."""

_REQUEST = "held__"
"""What the id of a DAG run that asks begins with; pipeline, ``__`` and `HeldSlice.key` follow."""


class AskOperator(TriggerDagRunOperator):
    """Asks about the first held slice that nobody was asked about; skipped when there is none.

    Fails while the term of a held slice is over, also when a DAG run has nothing else to do.
    The run's id names the slice, so there is one request for each, whichever drain asks.
    """

    def __init__(self, *, project_root: str, pipeline: str, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id=DECIDE,
            logical_date=None,
            skip_when_already_exists=True,
            openlineage_inject_parent_info=False,
            **kwargs,
        )
        self.project_root = project_root
        self.pipeline = pipeline

    def execute(self, context: Context) -> None:
        with open_metastore(self.project_root) as metastore:
            found = terms(Workspace(load_project(Path(self.project_root)), metastore), self.pipeline)
        for slice_ in (term.held for term in found):
            run_id = f"{_REQUEST}{self.pipeline}__{slice_.key}"
            if not context["ti"].get_dr_count(dag_id=self.trigger_dag_id, run_ids=[run_id]):
                self.log.info("%s of %s: asking in %s", slice_, self.pipeline, self.trigger_dag_id)
                self.trigger_run_id = run_id
                super().execute(context)
        try:
            refuse_overdue(found)
        except AuditFailed as error:
            raise AirflowFailException(str(error)) from None
        raise AirflowSkipException(f"{self.pipeline}: no slice is held that nobody was asked about")


class ChooseOperator(ReasonedRequest):
    """Asks whether a held slice is to be released or discarded, while it is held."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject="Release or discard a held slice?", options=["release", "discard"], **kwargs)

    def execute(self, context: Context) -> None:
        pipeline, key = _asked(context)
        with open_metastore(self.project_root) as metastore:
            held = next((s for s in metastore.held_slices(pipeline) if s.key == key), None)
            if held is None:
                self.log.info("%s", decided_text(metastore, pipeline, key))
                return
            self.subject = f"{pipeline}: release or discard {held}, {held.rows:,} rows?"
            self.body = request_body(held, metastore.run(held.verdict.run_id))
        self.ask(context)

    def asked_about(self, context: Context) -> str:
        return _asked(context)[0]

    def refuse_late_answer(self, context: Context, chosen: str) -> None:
        pipeline, key = _asked(context)
        with open_metastore(self.project_root) as metastore:
            if key not in [held.key for held in metastore.held_slices(pipeline)]:
                decided = decided_text(metastore, pipeline, key)
                raise AirflowFailException(f"this answer came too late and changes nothing: {decided}")


class DecideOperator(RescheduledOperator):
    """Carries the choice out, and updates the pipeline's asset with what became visible.

    It waits while a drain holds the lease, or an earlier slice waits for its decision.
    Skipped when nothing became visible that no event has covered. Its inlet and its outlet must be DECIDED.
    """

    # An earlier slice is decided about in a request of its own.
    waits_for = ("slice.out-of-order",)

    def carry_out(self, context: Context) -> dict[str, Any]:
        pipeline, key = _asked(context)
        record = context["ti"].xcom_pull(task_ids="choose")
        with open_metastore(self.project_root) as metastore:
            chosen = kept(metastore, pipeline, record, context) if record else None
            run = self._decide(metastore, pipeline, key, _decision(context, chosen, key) if chosen else None)
            event = decision_event(metastore, run)
        if not event["rows"]:
            raise AirflowSkipException(f"{pipeline}: decided; nothing became visible by it")
        if is_reported(run, context["inlet_events"][DECIDED]):
            raise AirflowSkipException(f"{pipeline}: an earlier event of its asset covers {run.run_id}")
        context["outlet_events"][DECIDED].add(asset_of(pipeline), extra=event)
        self.log.info("%s: %d rows became visible", pipeline, event["rows"])
        return event

    def _decide(self, metastore: Metastore, name: str, key: str, decision: Decision | None) -> Run:
        """The decision's run record: made now, by an earlier try that died after it, or by command."""
        done = decision_about(metastore, name, key)
        if decision is None:
            if done is None:
                raise AirflowFailException("nobody has decided: clear `choose` to be asked again")
            return done
        if done is None or done.origin.get("dag_run_id") != decision.origin["dag_run_id"]:
            project = load_project(Path(self.project_root))
            pipeline = in_use(Workspace(project, metastore), load_pipeline(project, name))
            project = with_logins(project, look_up(project, [pipeline]))
            decide(Workspace(project, metastore), pipeline, decision)
            done = metastore.run(decision.run_id)
        assert done is not None
        return done


def _asked(context: Context) -> tuple[str, str]:
    """Pipeline and slice of the DAG run. Raises AirflowFailException when no held slice has started it."""
    run_id: str = context["ti"].run_id
    pipeline, _, key = run_id.removeprefix(_REQUEST).rpartition("__")
    if not run_id.startswith(_REQUEST) or not pipeline:
        raise AirflowFailException(
            "a held slice starts this DAG; clear `choose` of its run to be asked again"
        )
    return pipeline, key


def _decision(context: Context, chosen: Answer, key: str) -> Decision:
    ti = context["ti"]
    return Decision(
        "release" if chosen.choice == "release" else "discard",
        new_run_id(),
        this_process(),
        chosen.by,
        chosen.why,
        key,
        {"dag_id": ti.dag_id, "dag_run_id": ti.run_id},
    )
