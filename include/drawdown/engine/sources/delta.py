"""Delta sources: a table of this project, as a stream of what is appended to it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from drawdown.engine.sources.columns import options, with_system_columns
from drawdown.engine.sources.files import existing_path
from drawdown.spec import Pipeline, Project


def read_delta(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """The rows appended to a table. Raises SourceError when there is no folder."""
    reader = session.readStream.format("delta").options(**options(pipeline.sources[name]))
    return with_system_columns(reader.load(existing_path(project, pipeline, name)))
