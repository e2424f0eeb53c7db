"""Which version of a pipeline is in use: the folder's, or the one in `next/` for a rebuild.

And how it treats its batches: a batch becomes visible as it was meant to when it was staged. So a changed
`publish:` or `delivery:` takes effect once nothing older waits to be published. A newer batch that is visible
at once would leave the older ones behind it for ever, since a sink keeps the number of the last one, and a
batch that is visible already would be taken for one that can still be discarded.
"""

from __future__ import annotations

from drawdown.metastore.records import UNPUBLISHED, Checkpoint
from drawdown.plan.fingerprint import spec_fingerprint
from drawdown.plan.spec_changes import changes
from drawdown.spec import Pipeline, Project, load_next, load_pipeline
from drawdown.workspace import Workspace


def wanted(project: Project, name: str) -> Pipeline:
    """Return the version to rebuild: `next/` if it exists, else the folder's own. Raises SpecError."""
    return load_next(project, name) or load_pipeline(project, name)


def in_use(workspace: Workspace, pipeline: Pipeline) -> Pipeline:
    """Return the version for draining the live generation: the folder's, or after a swap `next/`.

    Once `next/` was moved into the folder, or holds a later version, the folder's fits better. While batches
    wait, it treats batches as those were meant to be.

    Raises:
        SpecError: the version in `next/` is invalid. RefusedError: ``rebuild.unfinished``.
    """
    if pipeline.is_next:
        # The version in use before a roll back no longer counts.
        pipeline = load_pipeline(workspace.project, pipeline.name)
    live = workspace.metastore.active_checkpoint(pipeline.name)
    if live is None:
        return pipeline
    waiting = workspace.metastore.batches(pipeline.name, live.generation, UNPUBLISHED)
    noted = next((batch.treatment for batch in waiting if batch.treatment), {})
    return _version(workspace, pipeline, live).treating(noted)


def _version(workspace: Workspace, pipeline: Pipeline, live: Checkpoint) -> Pipeline:
    following = load_next(workspace.project, pipeline.name) if live.rebuild.get("from_next") else None
    if following is None:
        return pipeline
    of = live.fingerprint
    return min((following, pipeline), key=lambda each: len(changes(of, spec_fingerprint(each))))
