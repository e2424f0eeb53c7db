"""Spark's own sources for tests: socket, rate and rate-micro-batch; no schedule may use them."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from drawdown.engine.sources.columns import options, with_system_columns
from drawdown.spec import Pipeline, Project


def read_generated(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """socket: value STRING (timestamp TIMESTAMP); the others: timestamp TIMESTAMP, value BIGINT."""
    source = pipeline.sources[name]
    return with_system_columns(session.readStream.format(source.format).options(**options(source)).load())
