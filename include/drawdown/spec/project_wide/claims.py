"""What a pipeline takes of what all pipelines share, each as one line of text.

A run records the lines of its pipeline in the metastore, with the time since when they hold. When two
pipelines collide, the one whose line is recorded stays (collisions.py). A line holds all that makes a
collision, so that a pipeline that changes it counts as new there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from drawdown.layout import OWN
from drawdown.sources.registry import SOURCES
from drawdown.spec.pipeline import Pipeline
from drawdown.spec.project import Project
from drawdown.spec.source import Source

GROUP_SETTINGS = ("schedule", "airflow", "cluster")
"""Keys that all pipelines of a group give the same value, because they are one DAG and one application."""


def claims_of(project: Project, pipeline: Pipeline) -> frozenset[str]:
    """Return all lines of a pipeline."""
    return frozenset(_claims(project, pipeline))


def _claims(project: Project, pipeline: Pipeline) -> Iterator[str]:
    yield dag_claim(pipeline)
    if pipeline.group:
        yield from (setting_claim(pipeline, key) for key in GROUP_SETTINGS)
        yield order_claim(pipeline)
    if pipeline.sink.path is not None:
        yield sink_claim(pipeline)
    if pipeline.sink.table is not None:
        yield table_claim(project, pipeline)
    if pipeline.replay:
        yield replay_claim(pipeline)
    for source in pipeline.sources.values():
        if source.commit_group is not None:
            yield commit_claim(project, source)
        if source.path is not None:
            yield reading_claim(source)
            if cleans(source):
                yield cleaning_claim(source)
            if not source.static:
                yield streaming_claim(source)


def cleans(source: Source) -> bool:
    """Whether a source moves or deletes the files that it has read."""
    return not source.static and SOURCES[source.format].cleans(source.options)


def dag_claim(pipeline: Pipeline) -> str:
    return f"dag {pipeline.group or pipeline.name}"


def setting_claim(pipeline: Pipeline, key: str) -> str:
    """Return the line of one of the GROUP_SETTINGS."""
    return f"group {pipeline.group} {key} {setting_text(pipeline, key)}"


def setting_text(pipeline: Pipeline, key: str) -> str:
    """Return the value of one of the GROUP_SETTINGS, as YAML takes it."""
    value = getattr(pipeline, key)
    if key == "airflow":
        return json.dumps(value.model_dump(mode="json", exclude_none=True), sort_keys=True)
    return json.dumps(value)


def order_claim(pipeline: Pipeline) -> str:
    """Return the line of what decides after whom it runs, and who runs after it."""
    read = {path for source in pipeline.sources.values() if (path := source.path_below_root)}
    awaited = pipeline.schedule if isinstance(pipeline.schedule, list) else []
    return f"group {pipeline.group} order {sorted(read | set(awaited))} {pipeline.sink.path}"


def sink_claim(pipeline: Pipeline) -> str:
    return f"sink {pipeline.sink.path}"


def table_of(project: Project, pipeline: Pipeline) -> tuple[str, str]:
    """Return the database's address, or nothing, and the table's name as that place tells names apart."""
    sink = pipeline.sink
    if sink.format == "postgres":
        return project.databases[sink.database].address, str(sink.table)
    return "", str(sink.table).lower()


def table_claim(project: Project, pipeline: Pipeline) -> str:
    where, table = table_of(project, pipeline)
    return f"table {where} {table}" if where else catalog_claim(table)


def catalog_claim(table: str) -> str:
    """Return the line of a table that Spark's catalog knows."""
    return f"table {table.lower()}"


def replay_claim(pipeline: Pipeline) -> str:
    return f"replay {pipeline.name} {pipeline.sink.path}"


def group_of_commits(project: Project, source: Source) -> tuple[str, str]:
    """Return the brokers' addresses and the consumer group that a source commits to."""
    return project.brokers[source.broker].bootstrap_servers, str(source.commit_group)


def commit_claim(project: Project, source: Source) -> str:
    return " ".join(["commits", *group_of_commits(project, source)])


def reading_claim(source: Source) -> str:
    return f"reads {source.storage or OWN} {source.path}"


def streaming_claim(source: Source) -> str:
    """Return the line of how a stream takes commits that remove rows."""
    return f"streams {source.format} {source.path} {sorted(source.options)}"


def cleaning_claim(source: Source) -> str:
    options = source.options
    return (
        f"{reading_claim(source)} {options.get('cleanSource')} {options.get('sourceArchiveDir', '')}".strip()
    )
