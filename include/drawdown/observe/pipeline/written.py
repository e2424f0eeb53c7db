"""The files of a pipeline's folder as somebody wrote them, for people to read.

Only a spec that loads is shown: one that does not may be refused for a secret in it. ${ENV} stays a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drawdown.errors import DrawdownError
from drawdown.spec import Pipeline, load_pipeline, pipeline_names
from drawdown.spec.reading.secrets import without_secrets
from drawdown.workspace import Workspace

MOST = 100_000
"""Characters of a file that are shown."""


@dataclass(frozen=True)
class WrittenFile:
    """A file of the folder; ``name`` is relative to it."""

    name: str
    text: str


@dataclass(frozen=True)
class Written:
    """The folder of a pipeline.

    Attributes:
        spec: None when it cannot be read; ``problem`` then says why.
        files: pipeline.yaml, the transform, quality.yaml and schemas; none without a spec.
    """

    spec: Pipeline | None
    files: tuple[WrittenFile, ...] = ()
    problem: dict[str, str] | None = None


def written(workspace: Workspace, pipeline: str) -> Written:
    """Return the files of a pipeline's folder."""
    if pipeline not in pipeline_names(workspace.project):
        # load_pipeline would name the nearest pipeline, which the reader may not be allowed to know.
        gone = {
            "id": "spec.no-pipeline",
            "what": f"the folder include/pipelines/{pipeline} is gone: what was recorded stays",
            "where": "include/pipelines",
            "do": f"`drawdown rename {pipeline} NEW` if it has a new name",
        }
        return Written(None, problem=gone)
    try:
        spec = load_pipeline(workspace.project, pipeline)
    except DrawdownError as error:
        return Written(None, problem=error.as_dict())
    return Written(spec, tuple(_files(spec)))


def _files(spec: Pipeline) -> Iterator[WrittenFile]:
    schemas = (spec.sink.schema_file, *(source.schema_file for source in spec.sources.values()))
    names = ["pipeline.yaml", spec.transform, "quality.yaml", *(name for name in schemas if name)]
    for name in dict.fromkeys(names):
        try:
            text = (spec.folder / Path(name)).read_text(errors="replace")
        except OSError:
            continue
        yield WrittenFile(name, without_secrets(text[:MOST]))
