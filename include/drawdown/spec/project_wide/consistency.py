"""Finds conflicts between pipelines: groups, sinks, and assets that no pipeline publishes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from drawdown.errors import SpecError
from drawdown.sources.registry import SOURCES
from drawdown.spec.pipeline import Pipeline
from drawdown.values.dag_ids import OWN, replay_dag_id
from drawdown.values.globs import meets
from drawdown.values.nearest import did_you_mean
from drawdown.values.paths import overlaps

# Options with which a stream continues after a commit that removes rows, which otherwise ends it
# (DELTA_SOURCE_TABLE_IGNORE_CHANGES).
_GOES_ON = frozenset({"skipChangeCommits", "readChangeFeed", "ignoreChanges"})


def conflicts(pipelines: Sequence[Pipeline]) -> dict[str, SpecError]:
    """Return an error for every pipeline that contradicts another one, by the pipeline's name."""
    found: dict[str, SpecError] = {}
    for names, error in (
        *_schedules(pipelines),
        *_sinks(pipelines),
        *_tables(pipelines),
        *_assets(pipelines),
        *_cleaned(pipelines),
        *_commit_groups(pipelines),
        *_replayed(pipelines),
        *_taken_names(pipelines),
    ):
        for name in names:
            found.setdefault(name, error)
    return found


def _schedules(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    groups: dict[str, list[Pipeline]] = defaultdict(list)
    for pipeline in pipelines:
        if pipeline.group:
            groups[pipeline.group].append(pipeline)
    for group, members in groups.items():
        first = members[0]
        for key in ("schedule", "airflow"):
            other = next((one for one in members if getattr(one, key) != getattr(first, key)), None)
            if other:
                yield (
                    [member.name for member in members],
                    SpecError(
                        f"spec.group-{key}",
                        f"group {group!r} is one DAG, but {first.name} and {other.name} differ in `{key}:`",
                        where=f"{_file(first)} and {_file(other)}",
                        do=f"give every pipeline of the group the same `{key}:`",
                    ),
                )


def _sinks(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    # Sorted with a slash after each part, a folder comes directly before the folders in it.
    stored = [(each.sink.path, each) for each in pipelines if each.sink.path is not None]
    for (path, one), (other_path, other) in pairwise(sorted(stored, key=lambda each: each[0] + "/")):
        if overlaps(path, other_path):
            yield (
                [one.name, other.name],
                SpecError(
                    "spec.shared-sink",
                    f"{one.name} and {other.name} both write into {path}",
                    where=f"{_file(one)} and {_file(other)}",
                    do="give each pipeline its own sink path",
                ),
            )


def _tables(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    first: dict[tuple[str, str], Pipeline] = {}
    for pipeline in pipelines:
        sink, table = pipeline.sink, pipeline.sink.table
        where = sink.database if sink.format == "postgres" else ""
        if table is not None and (other := first.setdefault((where, table), pipeline)) is not pipeline:
            yield (
                [other.name, pipeline.name],
                SpecError(
                    "spec.shared-table",
                    f"{other.name} and {pipeline.name} both call their table {table}",
                    where=f"{_file(other)} and {_file(pipeline)}",
                    do="give each sink its own `table:`",
                ),
            )


def _assets(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    # A pipeline that failed to load is unknown here too: then its followers wait for it as well.
    known = {pipeline.name for pipeline in pipelines}
    for pipeline in pipelines:
        for asset in pipeline.schedule if isinstance(pipeline.schedule, list) else ():
            if asset.pipeline not in known or asset.pipeline == pipeline.name:
                others = known - {pipeline.name}
                yield (
                    [pipeline.name],
                    SpecError(
                        "spec.unknown-asset",
                        f"no other pipeline publishes {asset}; {did_you_mean(asset.pipeline, others)}",
                        where=_file(pipeline),
                        do="correct the name, or fix that pipeline first",
                    ),
                )


def _cleaned(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    """Spark's guide: a source path must not be used by several sources when its files are cleaned."""
    read = [
        (p, name, source) for p in pipelines for name, source in p.sources.items() if source.path_below_root
    ]
    for pipeline, name, source in read:
        if not SOURCES[source.format].cleans(source.options):
            continue
        for other, other_name, reader in read:
            path, others = source.path or "", reader.path or ""
            if (other, other_name) != (pipeline, name) and (meets(path, others) or meets(others, path)):
                yield (
                    [pipeline.name],
                    SpecError(
                        "spec.cleaned-source",
                        f"source {name} of {pipeline.name} moves or deletes the files it has read, and source"
                        f" {other_name} of {other.name} reads {others} too",
                        where=f"{_file(pipeline)} and {_file(other)}",
                        do="remove cleanSource, or give each source its own folder",
                    ),
                )


def _commit_groups(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    """Two sources with one group would each move the offsets that the other has committed."""
    first: dict[tuple[str, str], tuple[Pipeline, str]] = {}
    for pipeline in pipelines:
        for name, source in pipeline.sources.items():
            if source.commit_group is None:
                continue
            other, other_name = first.setdefault((source.broker, source.commit_group), (pipeline, name))
            if (other, other_name) != (pipeline, name):
                yield (
                    list(dict.fromkeys([other.name, pipeline.name])),
                    SpecError(
                        "spec.shared-group",
                        f"source {other_name} of {other.name} and source {name} of {pipeline.name} both"
                        f" commit to the consumer group {source.commit_group} of broker {source.broker}",
                        where=f"{_file(other)} and {_file(pipeline)}",
                        do="give each source its own `commit_group:`",
                    ),
                )


def _replayed(pipelines: Iterable[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    """A stream over a Delta table ends at a commit that removes rows."""
    replayed = {each.sink.path: each for each in pipelines if each.replay and each.sink.mode == "append"}
    for reader in pipelines:
        for name, source in reader.streaming_sources.items():
            read = replayed.get(source.path_below_root) if source.format in ("delta", "table") else None
            if read is not None and not _GOES_ON & source.options.keys():
                yield (
                    [read.name],
                    SpecError(
                        "spec.replayed-source",
                        f"{read.name} has `replay:`, which replaces rows, but source {name} of"
                        f" {reader.name} streams its table: the stream would end at the first replay",
                        where=f"{_file(read)} and {_file(reader)}",
                        do=f"give source {name} `options: {{skipChangeCommits: true}}`: {reader.name} then"
                        " keeps its results from the old rows; or remove `replay:`",
                    ),
                )


def _taken_names(pipelines: Sequence[Pipeline]) -> Iterator[tuple[list[str], SpecError]]:
    """Only the pipeline that takes a name gets the error: a new folder does not harm existing DAGs."""
    owners = dict.fromkeys(OWN, "is one of Drawdown's own DAGs")
    owners |= {
        replay_dag_id(each.name): f"is the replay DAG of pipeline {each.name!r}, which has `replay:`"
        for each in pipelines
        if each.replay
    }
    for pipeline in pipelines:
        taken = pipeline.group or pipeline.name
        if taken in owners:
            yield (
                [pipeline.name],
                SpecError(
                    "spec.taken-name",
                    f"{taken!r} {owners[taken]}",
                    where=_file(pipeline),
                    do="rename the group" if pipeline.group else "rename the pipeline",
                ),
            )


def _file(pipeline: Pipeline) -> str:
    return f"include/pipelines/{pipeline.name}/pipeline.yaml"
