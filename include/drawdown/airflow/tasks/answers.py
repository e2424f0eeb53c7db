"""Answers of people, kept in the metastore between the task that asks and the task that carries them out.

Every task of the same Airflow can write an XCom, so it only names the record that holds the answer. The
asking task writes who answered and why into that record, as Airflow's web server reported it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from drawdown.application import new_run_id
from drawdown.metastore import Metastore, this_process
from drawdown.metastore.operations.runs import ANSWER
from drawdown.metastore.records import Run

if TYPE_CHECKING:
    from airflow.sdk import Context


@dataclass(frozen=True)
class Answer:
    """What was chosen, by which Airflow user, and why."""

    choice: str
    by: str
    why: str


def keep(metastore: Metastore, pipeline: str, answer: Answer, context: Context) -> str:
    """Store the answer to the request of this DAG run; return the id of its record."""
    origin = {**_asked_by(context), **asdict(answer)}
    run = Run(new_run_id(), pipeline, kind=ANSWER, holder=this_process(), origin=origin)
    metastore.start_run(run)
    metastore.finish_run(run.run_id, "succeeded", stop_reason=f"{answer.choice}: {answer.why}")
    return run.run_id


def kept(metastore: Metastore, pipeline: str, record: object, context: Context) -> Answer:
    """Return the answer from a record that `keep` made in this DAG run.

    Raises:
        AirflowFailException: the record belongs to another request, or there is none.
    """
    run = metastore.run(record) if isinstance(record, str) else None
    asked_by = _asked_by(context)
    if (
        run is None
        or (run.kind, run.pipeline) != (ANSWER, pipeline)
        or not asked_by.items() <= run.origin.items()
    ):
        raise AirflowFailException(
            f"{record!r} is no answer to this request: clear the task that asks, to be asked again"
        )
    return Answer(run.origin["choice"], run.origin["by"], run.origin["why"])


def _asked_by(context: Context) -> dict[str, Any]:
    ti = context["ti"]
    return {"dag_id": ti.dag_id, "dag_run_id": ti.run_id}
