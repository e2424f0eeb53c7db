"""A request that waits in Airflow's *Required Actions* for a choice with a reason, without a worker slot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.run_records import open_metastore
from drawdown.airflow.tasks.answers import Answer, keep
from drawdown.airflow.tasks.task_failures import NoRetryOfPermanent, plainly
from drawdown.spec import load_pipeline, load_project

if TYPE_CHECKING:
    from airflow.sdk import Context

LOOK_AGAIN = timedelta(hours=1)
"""How often an open request checks whether a command has answered it."""


class ReasonedRequest(HITLOperator):
    """Asks a question, and asks again when an answer has no reason. A subclass's `execute` sets the question.

    Returns:
        The id of the record that holds the answer (answers.py); None when `execute` found nothing to ask.
    """

    # A question shows values of rows: no template.
    template_fields = ()

    def __init__(self, *, project_root: str, **kwargs: Any) -> None:
        # Airflow passes the DAG's parameters; a request asks for none of them.
        kwargs.pop("params", None)
        super().__init__(
            retry_policy=NoRetryOfPermanent(),
            params={"why": Param("", type="string", title="Why", description="Kept in the run record.")},
            response_timeout=LOOK_AGAIN,
            **kwargs,
        )
        self.project_root = project_root

    @abstractmethod
    def refuse_late_answer(self, context: Context, chosen: str) -> None:
        """Raise AirflowFailException when the question is settled, or is about something else by now."""

    @abstractmethod
    def asked_about(self, context: Context) -> str:
        """Return the name of the pipeline."""

    def ask(self, context: Context) -> None:
        """Open the request; when there are approvers, only for them."""
        approvers = self._approvers(self.asked_about(context))
        # Airflow compares ids and shows names.
        self.assigned_users = [{"id": user, "name": user} for user in approvers]
        super().execute(context)

    @plainly
    def execute_complete(self, context: Context, event: dict[str, Any]) -> str | None:
        """Take the answer; `event` is from Airflow's web server, which knows who was logged in."""
        if event.get("error_type") == "timeout":
            self.execute(context)
            return None
        self.refuse_late_answer(context, event["chosen_options"][0])
        answer = super().execute_complete(context, event)
        pipeline = self.asked_about(context)
        user = _allowed(answer["responded_by_user"], self._approvers(pipeline), pipeline)
        why = str(answer["params_input"].get("why", "")).strip()
        if not why:
            self.log.warning("the answer gave no reason: asking again")
            self.execute(context)
            return None
        with open_metastore(self.project_root) as metastore:
            return keep(metastore, pipeline, Answer(answer["chosen_options"][0], user, why), context)

    def _approvers(self, pipeline: str) -> Collection[str]:
        """Return the ids of the users who may decide; empty: everybody who may edit the DAG run.

        The pipeline's own spec names them: a version in `next/` cannot choose who decides about it.
        """
        return load_pipeline(load_project(Path(self.project_root)), pipeline).deciders


def _allowed(user: dict[str, str] | None, approvers: Collection[str], pipeline: str) -> str:
    """Return the user's name. Raises AirflowFailException if nobody was logged in, or no approver."""
    if user is None:
        raise AirflowFailException("Airflow does not know who answered: clear this task to ask again")
    if approvers and user["id"] not in approvers:
        raise AirflowFailException(
            f"{user['name']} is not among the `approvers:` of {pipeline} ({', '.join(approvers)}):"
            " this answer changes nothing; clear this task to ask again"
        )
    return user["name"]
