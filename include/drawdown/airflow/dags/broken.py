"""The DAG of a pipeline whose spec cannot be read: it shows the error, and fails with it when run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from drawdown.airflow.dag_tags import dag_tags
from drawdown.airflow.documentation import broken_documentation
from drawdown.airflow.tasks.task_failures import plainly
from drawdown.errors import SpecError

if TYPE_CHECKING:
    from airflow.sdk import Context

BROKEN = "broken"
"""The only task of such a DAG. No other DAG has a task of this name."""


class BrokenOperator(BaseOperator):
    """Fails with the text of the error for which the DAG stands."""

    def __init__(self, *, error: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.error = error

    @plainly
    def execute(self, context: Context) -> None:
        raise AirflowFailException(self.error)


def broken_dag(dag_id: str, error: SpecError) -> DAG:
    """Return a DAG without a schedule, tagged `broken`."""
    dag = DAG(
        dag_id,
        description=f"broken: {error.what}"[:500],
        schedule=None,
        catchup=False,
        tags=dag_tags("broken"),
        doc_md=broken_documentation(error),
    )
    BrokenOperator(task_id=BROKEN, error=str(error), dag=dag)
    return dag
