"""Sources: from a spec to DataFrames that all look alike at the boundary; one module a kind of source.

A streaming frame has the user's columns and the SYSTEM_COLUMNS of columns.py, which boundary.py reads
and drops.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.sources.delta.reader import known_table, read_delta
from drawdown.sources.existing_path import existing_path
from drawdown.sources.files.reader import read_files
from drawdown.sources.kafka.reader import read_kafka
from drawdown.sources.python.reader import read_python
from drawdown.sources.spark_columns import CORRUPT, ORIGIN, PAYLOAD, SYSTEM_COLUMNS, options, schema_of
from drawdown.sources.test.reader import read_generated
from drawdown.spec import Pipeline, Project

__all__ = ["CORRUPT", "ORIGIN", "PAYLOAD", "SYSTEM_COLUMNS", "read_static", "read_stream"]

_READERS = {
    "kafka": read_kafka,
    "delta": read_delta,
    "table": read_delta,
    "python": read_python,
} | dict.fromkeys(("socket", "rate", "rate-micro-batch"), read_generated)


def read_stream(
    session: SparkSession, project: Project, pipeline: Pipeline, name: str, inferred: StructType | None = None
) -> DataFrame:
    """The streaming frame of one source: the user's columns and SYSTEM_COLUMNS.

    Args:
        inferred: the columns of a source that declares none, see files/spark_inference.py.

    Raises:
        SourceError: the folder to read is not there, the broker does not answer.
        SpecError: the schema file does not parse.
    """
    reader = _READERS.get(pipeline.sources[name].format)
    if reader is not None:
        return reader(session, project, pipeline, name)
    return read_files(session, project, pipeline, name, inferred or schema_of(pipeline, name))


def read_static(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """A static source, read whole at every run.

    Raises:
        SourceError: there is nothing at its path.
        SpecError: the schema file does not parse.
    """
    source = pipeline.sources[name]
    path = existing_path(project, pipeline, name)
    reader = session.read.format(source.format).options(**options(source))
    if source.format == "table":
        return session.read.options(**options(source)).table(known_table(session, project, pipeline, name))
    schema = schema_of(pipeline, name)
    return (reader if schema is None else reader.schema(schema)).load(path)
