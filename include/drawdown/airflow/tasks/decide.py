"""The tasks by which a person decides about a held slice: `ask` in the drain's DAG, `choose` and `decide`.

`ask` starts the DAG `drawdown__decide` once for each held slice. There `choose` waits for an answer in
Airflow's *Required Actions*, in a state that takes no worker slot; `decide` carries it out, without Spark.
A decision made on the command line in the meantime stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import AssetAlias
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from drawdown.airflow.documentation import request_body
from drawdown.airflow.held_requests import asked_about, request_id
from drawdown.airflow.lineage_parent import lineage_parent
from drawdown.airflow.logins import look_up
from drawdown.airflow.run_records import decision_event, open_metastore
from drawdown.airflow.schedules import asset_of
from drawdown.airflow.tasks.answers import Answer, kept
from drawdown.airflow.tasks.asset_events import is_reported
from drawdown.airflow.tasks.reasoned_request import ReasonedRequest
from drawdown.airflow.tasks.rescheduled import RescheduledOperator
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.application import new_run_id
from drawdown.credentials import with_logins
from drawdown.held.deadlines import refuse_overdue, terms
from drawdown.held.decide import Decision, decide, decided_text, decision_about, decision_text
from drawdown.metastore import this_process
from drawdown.observe.lineage.run_events import told_at_its_end
from drawdown.plan.version_in_use import in_use
from drawdown.spec import load_pipeline, load_project
from drawdown.values.dag_ids import DECIDE
from drawdown.values.text import counted
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from airflow.sdk import Context

    from drawdown.metastore import Metastore
    from drawdown.metastore.records import Run


DECIDED = AssetAlias("drawdown.decided")
"""Outlet of `decide`, in place of the asset of the pipeline that a decision is about."""


class AskOperator(TriggerDagRunOperator):
    """Requests a decision about the first held slice without a request; skipped when there is none.

    Fails while a held slice is past its deadline, even if a DAG run has nothing else to do.
    The id of the started run names the slice, so each slice has one request, whichever drain asks.
    """

    template_fields = ()

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

    @plainly
    def execute(self, context: Context) -> None:
        with open_metastore(self.project_root) as metastore:
            found = terms(Workspace(load_project(Path(self.project_root)), metastore), self.pipeline)
        for slice_ in (term.held for term in found):
            run_id = request_id(self.pipeline, slice_.key)
            if not context["ti"].get_dr_count(dag_id=self.trigger_dag_id, run_ids=[run_id]):
                self.log.info("%s of %s: asking in %s", slice_, self.pipeline, self.trigger_dag_id)
                self.trigger_run_id = run_id
                super().execute(context)
        refuse_overdue(found)
        raise AirflowSkipException(f"{self.pipeline}: every held slice already has a request for a decision")


class ChooseOperator(ReasonedRequest):
    """Asks whether to release or discard a held slice, while it is held."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(subject="Release or discard a held slice?", options=["release", "discard"], **kwargs)

    @plainly
    def execute(self, context: Context) -> None:
        pipeline, key = _asked(context)
        with open_metastore(self.project_root) as metastore:
            held = next((s for s in metastore.held_slices(pipeline) if s.key == key), None)
            if held is None:
                self.log.info("%s", decided_text(metastore, pipeline, key))
                return
            self.subject = f"{pipeline}: release or discard {held}, {counted(held.rows, 'row')}?"
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

    It waits while a drain holds the lease, or an earlier slice waits for its decision. It sends an asset
    event for visible rows that no event has reported. Its inlet and its outlet must be DECIDED.
    """

    # An earlier slice has its own request.
    waits_for = ("slice.out-of-order",)

    def carry_out(self, context: Context) -> dict[str, Any]:
        pipeline, key = _asked(context)
        record = context["ti"].xcom_pull(task_ids="choose")
        with open_metastore(self.project_root) as metastore:
            chosen = kept(metastore, pipeline, record, context) if record else None
            parent = lineage_parent(load_project(Path(self.project_root)), context)
            decision = _decision(context, chosen, key, parent) if chosen else None
            run = self._decide(metastore, pipeline, key, decision)
            event = decision_event(metastore, run)
        self.log.info("%s", decision_text(run))
        if event["rows"] and not is_reported(run, context["inlet_events"][DECIDED]):
            context["outlet_events"][DECIDED].add(asset_of(pipeline), extra=event)
        return event

    def _decide(self, metastore: Metastore, name: str, key: str, decision: Decision | None) -> Run:
        """Return the decision's run record: made now, by an earlier try that died after it, or by command."""
        from drawdown.observe.record import recording

        done = decision_about(metastore, name, key)
        if decision is None:
            if done is None:
                raise AirflowFailException("no decision was made: clear `choose` to be asked again")
            return done
        if done is None or done.origin.get("dag_run_id") != decision.origin["dag_run_id"]:
            project = load_project(Path(self.project_root))
            pipeline = in_use(Workspace(project, metastore), load_pipeline(project, name))
            project = with_logins(project, look_up(project, [pipeline]))
            workspace = Workspace(project, metastore)
            with told_at_its_end(workspace, pipeline, decision.run_id), recording(workspace, name):
                decide(workspace, pipeline, decision)
            done = metastore.run(decision.run_id)
        assert done is not None
        return done


def _asked(context: Context) -> tuple[str, str]:
    """Return the DAG run's pipeline and slice. Raises AirflowFailException if no held slice started it."""
    asked = asked_about(context["ti"].run_id)
    if asked is None:
        raise AirflowFailException(
            "a held slice starts this DAG; clear `choose` of its run to be asked again"
        )
    return asked


def _decision(context: Context, chosen: Answer, key: str, parent: Mapping[str, str]) -> Decision:
    ti = context["ti"]
    return Decision(
        "release" if chosen.choice == "release" else "discard",
        new_run_id(),
        this_process(),
        chosen.by,
        chosen.why,
        key,
        {"dag_id": ti.dag_id, "dag_run_id": ti.run_id, **parent},
    )
