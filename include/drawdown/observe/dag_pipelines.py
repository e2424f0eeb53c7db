"""Which pipelines a DAG drains: one, or those of a group."""

from __future__ import annotations

from contextlib import suppress

from drawdown.errors import SpecError
from drawdown.spec import load_pipeline, pipeline_names
from drawdown.workspace import Workspace


def pipelines_of(workspace: Workspace, dag_id: str) -> list[str]:
    """Return the pipelines that a DAG drains, by name; none for another DAG.

    They are known from what is recorded, so that a removed pipeline keeps its page; one of which nothing is
    recorded yet is known by its spec.
    """
    figures = workspace.metastore.figures
    own = figures.read([dag_id])
    # The usual case is not worth a read of all pipelines.
    if own and own[0].content.get("dag_id") == dag_id:
        return [dag_id]
    recorded = [each.pipeline for each in figures.read() if each.content.get("dag_id") == dag_id]
    if recorded:
        return recorded
    if dag_id in pipeline_names(workspace.project):
        with suppress(SpecError):
            spec = load_pipeline(workspace.project, dag_id)
            return [dag_id] if (spec.group or dag_id) == dag_id else []
    return []
