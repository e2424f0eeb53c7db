"""A request that waits in Airflow's *Required Actions* for a choice with a reason, in no worker's slot."""

from __future__ import annotations

from abc import abstractmethod
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param

if TYPE_CHECKING:
    from airflow.sdk import Context

LOOK_AGAIN = timedelta(hours=1)
"""How often an open request looks whether a command has answered it."""


class ReasonedRequest(HITLOperator):
    """An answer without a reason is asked for again. A subclass says what is asked, by `execute`.

    Returns:
        ``{"choice", "by", "why"}``, or None when `execute` found nothing to ask any more.
    """

    def __init__(self, *, project_root: str, **kwargs: Any) -> None:
        # Airflow hands the DAG's parameters over; a request asks for none of them.
        kwargs.pop("params", None)
        super().__init__(
            params={"why": Param("", type="string", title="Why", description="Kept in the run record.")},
            response_timeout=LOOK_AGAIN,
            **kwargs,
        )
        self.project_root = project_root

    @abstractmethod
    def refuse_late_answer(self, context: Context, chosen: str) -> None:
        """Raise AirflowFailException when what was asked about is settled, or is another by now."""

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, str] | None:
        if event.get("error_type") == "timeout":
            self.execute(context)
            return None
        self.refuse_late_answer(context, event["chosen_options"][0])
        answer = super().execute_complete(context, event)
        why = str(answer["params_input"].get("why", "")).strip()
        if not why:
            self.log.warning("the answer gave no reason: asking again")
            self.execute(context)
            return None
        return {"choice": answer["chosen_options"][0], "by": answer["responded_by_user"]["name"], "why": why}
