"""The button `Run record` of a task: a link to the page of what its DAG run did."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow.sdk import BaseOperatorLink, conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PAGE_PREFIX = "/drawdown"


class RunRecordLink(BaseOperatorLink):
    """Leads to the page of drawdown.airflow.pages.run."""

    name = "Run record"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return run_page(ti_key.dag_id, ti_key.run_id)


def page_root() -> str:
    """Return the path below which the pages are, behind the prefix of Airflow's own address."""
    return f"{urlsplit(_base()).path}{PAGE_PREFIX}"


def run_page(dag_id: str, run_id: str) -> str:
    """Return the address of the page of a DAG run."""
    return f"{_base()}{PAGE_PREFIX}/runs/{quote(dag_id, safe='')}/{quote(run_id, safe='')}"


def task_page(dag_id: str, run_id: str, task_id: str) -> str:
    """Return the address of Airflow's own page of a task of a run."""
    return f"{_base()}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}/tasks/{task_id}"


def dag_page(dag_id: str) -> str:
    """Return the address of Airflow's own page of a DAG; empty when its `base_url` is not configured."""
    return f"{_base()}/dags/{quote(dag_id, safe='')}" if _base() else ""


def _base() -> str:
    base: str = conf.get("api", "base_url", fallback="")
    return base.rstrip("/")
