"""Pipelines of a project that have run, as far as the metastore says so, beside others that have not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from textwrap import dedent

from drawdown.layout import checkpoint_of
from drawdown.metastore import Metastore
from drawdown.spec import Pipeline, Project, iter_pipelines, load_pipeline, pipeline_names
from drawdown.spec.project_wide.claims import claims_of
from tests.support.spec_folders import SpecFolders

SPEC = """
{more}
sources:
  rows: {{format: json, path: {path}, schema: "id INT, at TIMESTAMP", options: {options}}}
transform: transform.sql
sink: {{format: delta, path: {sink}, schema: "id INT, at TIMESTAMP"{keys}}}
"""


def pipeline(
    folders: SpecFolders,
    name: str,
    more: str = "",
    options: str = "{}",
    path: str = "",
    sink: str = "",
    keys: str = "",
) -> None:
    """Write the folder of a pipeline, over one that is there."""
    folder = folders.root / "include" / "pipelines" / name
    folder.mkdir(exist_ok=True)
    text = SPEC.format(
        more=dedent(more), options=options, path=path or f"landing/{name}", sink=sink or f"tables/{name}",
        keys=f", {keys}" if keys else "",
    )  # fmt: skip
    (folder / "pipeline.yaml").write_text(text)
    (folder / "transform.sql").write_text("SELECT id, at FROM rows")


def note_run(project: Project, name: str, *, claims: bool = True) -> None:
    """Record what the first run of a pipeline records; without claims as an earlier version did."""
    _make(project)
    with Metastore.open(project.metastore_url) as metastore:
        lease = metastore.acquire(name, "test", f"run-{name}", timedelta(minutes=1))
        metastore.create_checkpoint(lease, 1, checkpoint_of(name, 1), {"format": 1})
        if claims:
            lines = claims_of(project, load_pipeline(project, name))
            metastore.note_claims(lease, lines, pipeline_names(project))
        metastore.release(lease)


def refused(project: Project) -> dict[str, str]:
    """Return the ids of errors by the name of the pipeline."""
    found = {}
    for name, each in zip(pipeline_names(project), iter_pipelines(project), strict=True):
        if not isinstance(each, Pipeline):
            found[name] = each.id
    return found


_made: list[bytes] = []


def _make(project: Project) -> None:
    """Make the metastore's file, from a copy after the first: migrating takes longer than a test."""
    file = Path(project.metastore_url.removeprefix("sqlite:///"))
    if file.exists():
        return
    if _made:
        file.write_bytes(_made[0])
        return
    Metastore.open(project.metastore_url).close()
    _made.append(file.read_bytes())
