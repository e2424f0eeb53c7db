"""Open the sources of a spec as DataFrames of one form; each kind of source has its own module.

A streaming frame has the user's columns and the SYSTEM_COLUMNS of spark_system_columns.py, which
rows/row_fates.py reads and drops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.kinds import code_at
from drawdown.sources.delta.reader import known_table
from drawdown.sources.existing_path import existing_path
from drawdown.sources.registry import SOURCES
from drawdown.sources.spark_system_columns import CORRUPT, ORIGIN, PAYLOAD, SYSTEM_COLUMNS, options, schema_of
from drawdown.spec import Pipeline, Project

__all__ = ["CORRUPT", "ORIGIN", "PAYLOAD", "SYSTEM_COLUMNS", "read_static", "read_stream"]


def read_stream(
    session: SparkSession,
    project: Project,
    pipeline: Pipeline,
    name: str,
    inferred: StructType | None = None,
    unread: Sequence[str] = (),
) -> DataFrame:
    """Return the streaming frame of one source: the user's columns and SYSTEM_COLUMNS.

    Args:
        inferred: the columns of a source that declares none, see files/spark_inference.py.
        unread: paths of a file source's files that are not opened.

    Raises:
        SourceError: the folder does not exist, or the broker does not answer.
        SpecError: the schema file does not parse.
    """
    reader = code_at(SOURCES[pipeline.sources[name].format].reader)
    given: dict[str, Any] = {} if inferred is None else {"inferred": inferred}
    if unread:
        given["unread"] = unread
    frame: DataFrame = reader(session, project, pipeline, name, **given)
    return frame


def read_static(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """Return a static source, which every run reads completely.

    Raises:
        SourceError: its path does not exist.
        SpecError: the schema file does not parse.
    """
    source = pipeline.sources[name]
    path = existing_path(project, pipeline, name)
    reader = session.read.format(source.format).options(**options(source))
    if source.format == "table":
        return session.read.options(**options(source)).table(known_table(session, project, pipeline, name))
    schema = schema_of(pipeline, name)
    return (reader if schema is None else reader.schema(schema)).load(path)
