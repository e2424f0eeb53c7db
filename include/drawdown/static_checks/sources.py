"""The columns that rules and transforms see of each source."""

from __future__ import annotations

import os

from drawdown.spec import Pipeline, Project, Source
from drawdown.static_checks.landing_folders import local_root
from drawdown.static_checks.relation import UNKNOWN, Relation
from drawdown.values.column import Column
from drawdown.values.ddl import NotDdlError, columns
from drawdown.values.json_text import read_json

_KAFKA = "key STRING, value STRING, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
_BESIDE_THE_VALUE = Column("_kafka", "")


def known_sources(project: Project, pipeline: Pipeline) -> dict[str, Relation]:
    """By source its columns; UNKNOWN where only Spark can tell."""
    return {name: _columns(project, source) for name, source in pipeline.sources.items()}


def declared(ddl: str | None) -> Relation:
    """The columns of a schema; UNKNOWN where there is none or it cannot be read."""
    try:
        found = columns(ddl or "")
    except NotDdlError:
        return UNKNOWN
    return Relation.of(found) if found else UNKNOWN


def _columns(project: Project, source: Source) -> Relation:
    if fixed := source.kind.columns.get(source.format):
        return declared(fixed)
    if source.format == "kafka":
        return _of_kafka(source)
    if source.format == "text" and not source.static:
        return declared("value STRING")
    if not source.kind.takes_files or source.infer_schema:
        return UNKNOWN
    found = declared(source.schema_ddl)
    if source.static and not _without_partitions(project, source):
        return Relation(found.columns)
    return found


def _of_kafka(source: Source) -> Relation:
    if source.value == "string":
        headers = [Column("headers", "")] if "includeHeaders" in source.options else []
        return Relation.of([*declared(_KAFKA).columns, Column("timestampType", "int"), *headers])
    found = _of_avro(source.schema_ddl) if source.value == "avro" else declared(source.schema_ddl)
    return Relation.of([*found.columns, _BESIDE_THE_VALUE]) if found.whole else UNKNOWN


def _of_avro(text: str | None) -> Relation:
    try:
        fields = read_json(text or "")["fields"]
        return Relation.of(Column(str(field["name"]), "") for field in fields)
    except (ValueError, KeyError, TypeError):
        return UNKNOWN


def _without_partitions(project: Project, source: Source) -> bool:
    """Whether it is sure that no folder of a static source adds columns (``day=2024-01-01``)."""
    root = local_root(project)
    if root is None or source.storage is not None:
        return False
    try:
        return not any("=" in entry.name for entry in os.scandir(root / str(source.path)))
    except OSError:
        return False
