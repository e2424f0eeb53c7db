"""What the rules say of a pipeline's analysed plan, without a drain."""

from __future__ import annotations

from drawdown.engine.examine import Subject, examine
from drawdown.engine.query import build_query
from drawdown.engine.session import query_session
from drawdown.engine.sinks import sink_for
from drawdown.plan.verdicts import PlanVerdict
from drawdown.spec import load_pipeline
from tests.support.workspace import Workspace


def verdicts(workspace: Workspace, name: str) -> dict[str, PlanVerdict]:
    """By id; a refused pipeline raises its refusal."""
    assert workspace.spark is not None
    project = workspace.project
    pipeline = load_pipeline(project, name)
    session = query_session(workspace.spark, pipeline)
    with workspace.metastore() as metastore:
        query = build_query(session, project, pipeline, sink_for(project, pipeline, metastore), 1, None)
    return {v.id: v for v in examine(Subject(pipeline, session, query.output))}
