"""Where a person decides about a held slice: the DAG run that asks, its page, the commands."""

from __future__ import annotations

from drawdown.airflow.links import task_page
from drawdown.metastore import Metastore
from drawdown.values.dag_ids import DECIDE
from drawdown.values.text import counted

_REQUEST = "held__"
"""Prefix of the id of a DAG run that asks; pipeline, ``__`` and `HeldSlice.key` follow."""


def request_id(pipeline: str, key: str) -> str:
    """Return the id of the DAG run of DECIDE that asks about a slice."""
    return f"{_REQUEST}{pipeline}__{key}"


def asked_about(run_id: str) -> tuple[str, str] | None:
    """Return pipeline and slice of a `request_id`; None for any other DAG run."""
    pipeline, _, key = run_id.removeprefix(_REQUEST).rpartition("__")
    return (pipeline, key) if run_id.startswith(_REQUEST) and pipeline else None


def where_to_decide(metastore: Metastore, pipeline: str, run_id: str | None = None) -> list[str]:
    """Return a text per held slice of a pipeline, oldest first, that says where to decide.

    Args:
        run_id: only slices that the audit of this run holds.
    """
    return [
        f"Held: {counted(held.rows, 'row')} of {pipeline} ({held}). Answer it under Required Actions:"
        f" {task_page(DECIDE, request_id(pipeline, held.key), 'choose')}/required_actions\n"
        f"  or by command: `drawdown release {pipeline} --why ...` or `drawdown discard {pipeline} --why ...`"
        for held in metastore.held_slices(pipeline)
        if run_id in (None, held.verdict.run_id)
    ]
