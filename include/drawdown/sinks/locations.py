"""Where the tables of a pipeline are: its output, and its quarantine."""

from __future__ import annotations

from drawdown.layout import quarantine_of
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


def output_uri(project: Project, pipeline: Pipeline) -> str:
    """Return the path or URL of a sink that keeps files."""
    assert pipeline.sink.path is not None
    return _place(project, pipeline, pipeline.sink.path)


def quarantine_uri(project: Project, pipeline: Pipeline) -> str:
    """Return the path or URL of the table of the pipeline's rejected rows."""
    return _place(project, pipeline, quarantine_of(pipeline.name))


def _place(project: Project, pipeline: Pipeline, path: str) -> str:
    return Storage.of(project).path("/".join(filter(None, (path, pipeline.apart))))
