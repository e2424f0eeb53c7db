"""Finds which pipelines of a project cannot be as they are, because of the others or of the project itself.

DAG factory, validate, plan, preflight and drains all ask it, through spec/loader.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from drawdown.errors import SpecError
from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project import Project
from drawdown.spec.project_wide.claims import (
    commit_claim,
    dag_claim,
    group_of_commits,
    replay_claim,
    sink_claim,
    streaming_claim,
    table_claim,
    table_of,
)
from drawdown.spec.project_wide.collisions import Collision, Flaw, Side, spec_file
from drawdown.spec.project_wide.one_dag import one_dag
from drawdown.spec.project_wide.places import address, own_places, sink_place
from drawdown.spec.project_wide.source_folders import source_folders
from drawdown.values.dag_ids import OWN, replay_dag_id
from drawdown.values.nearest import did_you_mean
from drawdown.values.path_sets import PathSet, lies_in

# Options with which a stream continues after a commit that removes rows, which otherwise ends it
# (DELTA_SOURCE_TABLE_IGNORE_CHANGES).
_GOES_ON = frozenset({"skipChangeCommits", "readChangeFeed", "ignoreChanges"})


def contradictions(
    project: Project, pipelines: Sequence[Pipeline], names: Collection[str]
) -> Iterator[Collision | Flaw]:
    """Yield everything that cannot be; `decide` says of each which pipeline has to change.

    Args:
        pipelines: those that could be read.
        names: all that have a folder.
    """
    yield from one_dag(pipelines)
    yield from _sinks(pipelines)
    yield from _own_places(project, pipelines)
    yield from _tables(project, pipelines)
    yield from _assets(pipelines, names)
    yield from source_folders(project, pipelines)
    yield from _commit_groups(project, pipelines)
    yield from _replayed(pipelines)
    yield from _taken_names(pipelines)


def _sinks(pipelines: Sequence[Pipeline]) -> Iterator[Collision]:
    # Sorted with a slash after each part, a folder comes directly before the folders in it.
    stored = sorted(
        (f"{each.sink.path}/", each.name, each) for each in pipelines if each.sink.path is not None
    )
    around: list[tuple[str, Pipeline]] = []
    for path, _, inner in stored:
        while around and not path.startswith(around[-1][0]):
            around.pop()
        for _, outer in around:
            yield Collision(
                "spec.shared-sink",
                (_side(outer, sink_claim(outer)), _side(inner, sink_claim(inner))),
                f"{outer.name} writes into {outer.sink.path}, and {inner.name} into {inner.sink.path}",
                "give it a sink path of its own, which holds no other and lies in no other",
            )
        around.append((path, inner))


def _own_places(project: Project, pipelines: Sequence[Pipeline]) -> Iterator[Flaw]:
    """A storage root may hold the project itself, or its state."""
    root = address(project.storage_root)
    places = [(each, PathSet.one(each.path)) for each in own_places(project) if lies_in(each.path, root)]
    for pipeline in pipelines:
        if pipeline.sink.path is None:
            continue
        sink = PathSet.one(sink_place(project, pipeline.sink.path))
        for place, there in places:
            if sink.meets(there):
                what = f"{pipeline.name} would write into {pipeline.sink.path}, where {place.what} can be"
                do = "give its sink a folder of its own"
                error = SpecError("spec.reserved-path", what, where=spec_file(pipeline.name), do=do)
                yield Flaw(pipeline.name, error)


def _side(pipeline: Pipeline, claim: str, *, yields: bool = False) -> Side:
    return Side((pipeline.name,), claim, yields)


def _tables(project: Project, pipelines: Sequence[Pipeline]) -> Iterator[Collision]:
    named: dict[tuple[str, str], list[Pipeline]] = {}
    for pipeline in pipelines:
        if pipeline.sink.table is not None:
            named.setdefault(table_of(project, pipeline), []).append(pipeline)
    for (_, table), users in named.items():
        if len(users) > 1:
            yield Collision(
                "spec.shared-table",
                tuple(_side(each, table_claim(project, each)) for each in users),
                f"{_all(users)} call their table {table}",
                "give its sink another `table:`",
            )


def _all(users: Sequence[Pipeline]) -> str:
    return " and ".join(each.name for each in users)


def _assets(pipelines: Sequence[Pipeline], names: Collection[str]) -> Iterator[Flaw]:
    for pipeline in pipelines:
        for asset in pipeline.schedule if isinstance(pipeline.schedule, list) else ():
            if asset.pipeline not in names or asset.pipeline == pipeline.name:
                others = set(names) - {pipeline.name}
                yield Flaw(
                    pipeline.name,
                    SpecError(
                        "spec.unknown-asset",
                        f"no other pipeline publishes {asset}; {did_you_mean(asset.pipeline, others)}",
                        where=spec_file(pipeline.name),
                        do="correct the name, or bring that pipeline's folder back",
                    ),
                )


def _commit_groups(project: Project, pipelines: Sequence[Pipeline]) -> Iterator[Collision | Flaw]:
    """Two sources with one group would each move the offsets that the other has committed."""
    users: dict[tuple[str, str], list[tuple[Pipeline, str]]] = {}
    for pipeline in pipelines:
        for name, source in pipeline.sources.items():
            if source.commit_group is not None:
                users.setdefault(group_of_commits(project, source), []).append((pipeline, name))
    for (_, group), found in users.items():
        said = " and ".join(f"source {name} of {pipeline.name}" for pipeline, name in found)
        what, do = f"{said} commit to the consumer group {group}", "give each source its own `commit_group:`"
        own = {pipeline.name: pipeline for pipeline, _ in found}
        for name in own:
            if sum(pipeline.name == name for pipeline, _ in found) > 1:
                yield Flaw(name, SpecError("spec.shared-group", what, where=spec_file(name), do=do))
        if len(own) > 1:
            sides = {pipeline.name: (pipeline, pipeline.sources[name]) for pipeline, name in found}
            yield Collision(
                "spec.shared-group",
                tuple(_side(each, commit_claim(project, source)) for each, source in sides.values()),
                what,
                do,
            )


def _replayed(pipelines: Sequence[Pipeline]) -> Iterator[Collision]:
    """A stream over a Delta table ends at a commit that removes rows."""
    replayed = {each.sink.path: each for each in pipelines if each.replay and each.sink.mode == "append"}
    for reader in pipelines:
        for name, source in reader.streaming_sources.items():
            read = replayed.get(source.path_below_root) if source.format in ("delta", "table") else None
            if read is not None and not _GOES_ON & source.options.keys():
                yield Collision(
                    "spec.replayed-source",
                    (_side(read, replay_claim(read), yields=True), _side(reader, streaming_claim(source))),
                    f"{read.name} has `replay:`, which replaces rows, but source {name} of"
                    f" {reader.name} streams its table: the stream would end at the first replay",
                    f"give source {name} `options: {{skipChangeCommits: true}}`: {reader.name} then"
                    " keeps its results from the old rows; or remove `replay:`",
                )


def _taken_names(pipelines: Sequence[Pipeline]) -> Iterator[Collision | Flaw]:
    replayed = {replay_dag_id(each.name): each for each in pipelines if each.replay}
    for pipeline in pipelines:
        taken = pipeline.group or pipeline.name
        do = "rename the group" if pipeline.group else "rename the pipeline"
        if taken in OWN:
            what = f"{taken!r} is one of Drawdown's own DAGs"
            error = SpecError("spec.taken-name", what, where=spec_file(pipeline.name), do=do)
            yield Flaw(pipeline.name, error)
        elif (owner := replayed.get(taken)) is not None:
            yield Collision(
                "spec.taken-name",
                (_side(owner, replay_claim(owner)), _side(pipeline, dag_claim(pipeline), yields=True)),
                f"{taken!r} is the replay DAG of pipeline {owner.name!r}, which has `replay:`, and the DAG of"
                f" {pipeline.name}",
                f"{do}, or remove `replay:` of {owner.name}",
            )
