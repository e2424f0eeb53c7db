"""Which pipelines a DAG drains: one, or those of a group."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from drawdown.errors import SpecError
from drawdown.metastore.records import RecordedFigures
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
    if own and _dag_of(own[0]) == dag_id:
        return [dag_id]
    recorded = [each.pipeline for each in figures.read() if _dag_of(each) == dag_id]
    if recorded:
        return recorded
    if dag_id in pipeline_names(workspace.project):
        with suppress(SpecError):
            spec = load_pipeline(workspace.project, dag_id)
            return [dag_id] if (spec.group or dag_id) == dag_id else []
    return []


def _dag_of(recorded: RecordedFigures) -> Any:
    """Another version of the program may have recorded what this one does not know: only the id is read."""
    return json.loads(recorded.content).get("dag_id")
