"""Which version of a pipeline counts: the folder's, or that in `next/`, the one that a rebuild makes."""

from __future__ import annotations

from drawdown.plan.changes import changes
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.spec import Pipeline, Project, load_next, load_pipeline
from drawdown.workspace import Workspace


def wanted(project: Project, name: str) -> Pipeline:
    """The version that a rebuild makes: that in `next/`, or else the folder's own. Raises SpecError."""
    return load_next(project, name) or load_pipeline(project, name)


def in_use(workspace: Workspace, pipeline: Pipeline) -> Pipeline:
    """The version that the live generation is drained with: the folder's, or after a swap that in `next/`.

    Once `next/` has been moved to the folder, or holds a version after that, the folder's fits better.

    Raises:
        SpecError: that in `next/` is wrong. RefusedError: ``rebuild.unfinished``.
    """
    if pipeline.is_next:
        # What was in use before a roll back says nothing of now.
        pipeline = load_pipeline(workspace.project, pipeline.name)
    live = workspace.metastore.active_checkpoint(pipeline.name)
    if live is None or not live.rebuild.get("from_next"):
        return pipeline
    following = load_next(workspace.project, pipeline.name)
    if following is None:
        return pipeline
    of = live.fingerprint
    return min((following, pipeline), key=lambda each: len(changes(of, spec_fingerprint(each))))
