"""Which version of a pipeline is in use: the folder's, or the one in `next/` for a rebuild."""

from __future__ import annotations

from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.spec_changes import changes
from drawdown.spec import Pipeline, Project, load_next, load_pipeline
from drawdown.workspace import Workspace


def wanted(project: Project, name: str) -> Pipeline:
    """Return the version to rebuild: `next/` if it exists, else the folder's own. Raises SpecError."""
    return load_next(project, name) or load_pipeline(project, name)


def in_use(workspace: Workspace, pipeline: Pipeline) -> Pipeline:
    """Return the version for draining the live generation: the folder's, or after a swap `next/`.

    Once `next/` was moved into the folder, or holds a later version, the folder's fits better.

    Raises:
        SpecError: the version in `next/` is invalid. RefusedError: ``rebuild.unfinished``.
    """
    if pipeline.is_next:
        # The version in use before a roll back no longer counts.
        pipeline = load_pipeline(workspace.project, pipeline.name)
    live = workspace.metastore.active_checkpoint(pipeline.name)
    if live is None or not live.rebuild.get("from_next"):
        return pipeline
    following = load_next(workspace.project, pipeline.name)
    if following is None:
        return pipeline
    of = live.fingerprint
    return min((following, pipeline), key=lambda each: len(changes(of, spec_fingerprint(each))))
