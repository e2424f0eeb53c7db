"""Python data sources: a class in a file of the pipeline's folder, registered in the query's own session."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource

from drawdown.errors import TransformError
from drawdown.sources.spark_system_columns import options, schema_of, with_system_columns
from drawdown.spark.user_code import RAISED, line_in, load_module, said
from drawdown.spec import Pipeline, Project


def read_python(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """Return the rows of a user's data source, with the columns that it names or the spec declares.

    Raises:
        TransformError: ``source.reader`` when the file does not load or holds no data source.
        SpecError: the schema does not parse.
    """
    found = data_source(pipeline, name)
    session.dataSource.register(found)
    reader = session.readStream.format(found.name()).options(**options(pipeline.sources[name]))
    schema = schema_of(pipeline, name)
    return with_system_columns((reader if schema is None else reader.schema(schema)).load())


def data_source(pipeline: Pipeline, name: str) -> type[DataSource]:
    """Return the only subclass of DataSource that the reader's file defines."""
    file = pipeline.folder / str(pipeline.sources[name].reader)
    as_name = f"drawdown_reader_{pipeline.name}_{name}"
    try:
        module = load_module(as_name, file)
    except RAISED as cause:
        raise TransformError(
            "source.reader",
            f"the reader of source {name} of {pipeline.name} does not load: {said(cause)}",
            where=line_in(cause, file),
            do="fix the file; nothing was read or written",
        ) from None
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, DataSource) and each.__module__ == as_name
    ]
    if len(found) != 1:
        raise TransformError(
            "source.reader",
            f"the reader of source {name} of {pipeline.name} must define one DataSource, and defines"
            f" {len(found)}",
            where=str(file),
            do="define one subclass of pyspark.sql.datasource.DataSource with streamReader or"
            " simpleStreamReader",
        )
    return found[0]
