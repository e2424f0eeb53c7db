"""Finds the readers of a pipeline's table: after a replay they get a notice, after a swap rows again."""

from __future__ import annotations

from drawdown.brokers.offsets import lower_case_options
from drawdown.plan.table_readers import Readers
from drawdown.spec import Pipeline, Project, iter_pipelines
from drawdown.spec.project_wide.order import upstreams
from drawdown.values.commands import rebuild
from drawdown.values.interval import Interval, shown
from drawdown.workspace import Workspace


def offers_downstream(project: Project, pipeline: Pipeline, interval: Interval) -> list[dict[str, str]]:
    """Return a run-record notice per pipeline that reads this one: `id`, `what`, `about`, `do`."""
    others = [each for each in iter_pipelines(project) if isinstance(each, Pipeline)]
    return [
        {
            "id": "replay.downstream",
            "what": f"{other.name} reads the replaced rows and was not recomputed",
            "about": other.name,
            "do": _do(other, interval),
        }
        for other in others
        if pipeline.name in upstreams(other, others)
    ]


def _do(other: Pipeline, interval: Interval) -> str:
    if other.replay:
        return f"drawdown backfill {other.name} --from {shown(interval.start)} --to {shown(interval.end)}"
    command = (
        rebuild(other.name) if other.sink.format == "delta" else "in a new pipeline folder with its own sink"
    )
    return f"{other.name} has no `replay:`; add it, or recompute everything: {command}"


def streaming_readers(workspace: Workspace, pipeline: Pipeline, table_id: str) -> list[str]:
    """Return the pipelines whose checkpoints show that they read a table as a stream of appended rows.

    A commit that removes rows does not reach them, or stops them until they set `skipChangeCommits`. Readers
    of the table's change feed see the change and are not listed. A reader whose checkpoint cannot be read is
    listed when its spec names the table.
    """
    specs = {each.name: each for each in iter_pipelines(workspace.project) if isinstance(each, Pipeline)}
    readers = Readers.of(workspace)
    found = set(readers.needed.get(table_id, ()))
    found |= {name for name in readers.unknown if name in specs and _feeds(specs[name], pipeline)}
    fed = {name for name in found if name in specs and all(_feeds(specs[name], pipeline) or [False])}
    return sorted(found - fed - {pipeline.name})


def streaming_readers_of_files(workspace: Workspace, pipeline: Pipeline) -> list[str]:
    """Pipelines that stream a file sink's folder and have drained before; file offsets contain no table
    id."""
    if pipeline.sink.path is None:
        return []
    return sorted(
        each.name
        for each in iter_pipelines(workspace.project)
        if isinstance(each, Pipeline)
        and each.name != pipeline.name
        and pipeline.sink.path in {source.path_below_root for source in each.streaming_sources.values()}
        and workspace.metastore.active_checkpoint(each.name) is not None
    )


def _feeds(reader: Pipeline, pipeline: Pipeline) -> list[bool]:
    """Return, per source on the pipeline's table, whether it reads the change feed."""
    return [
        str(lower_case_options(source).get("readchangefeed", False)).lower() == "true"
        for source in reader.sources.values()
        if source.path_below_root is not None and source.path_below_root == pipeline.sink.path
    ]
