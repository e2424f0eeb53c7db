"""File sources: csv, json, xml, parquet, orc and text."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from drawdown.sources.existing_path import existing_path
from drawdown.sources.files.names import one_file
from drawdown.sources.files.oversized import csv_columns
from drawdown.sources.files.replay import files_to_read
from drawdown.sources.files.spark_partitions import check_partitions, refused_by_spark
from drawdown.sources.replay_basis import ReplayedSource
from drawdown.sources.spark_system_columns import (
    CORRUPT,
    as_plain_path,
    options,
    schema_of,
    with_corrupt,
    with_system_columns,
)
from drawdown.spec import Pipeline, Project, Source
from drawdown.storage import Storage
from drawdown.values.temporary_names import FINISHED_NAMES

# Formats whose parser may find a record that it cannot read.
_PARSED = frozenset({"csv", "json", "xml"})


def read_files(
    session: SparkSession,
    project: Project,
    pipeline: Pipeline,
    name: str,
    inferred: StructType | None = None,
    unread: Sequence[str] = (),
) -> DataFrame:
    """Return the rows of a folder, or of the folders and files of a pattern, as a stream.

    Args:
        inferred: the columns of a source that declares none, see spark_inference.py.
        unread: paths of files that are not opened. Spark's log of seen files has them nevertheless.

    Raises:
        SourceError: the folder does not exist.
        SpecError, RefusedError: the folders' partition columns are not in the schema, or differ.
    """
    source, schema = pipeline.sources[name], inferred or schema_of(pipeline, name)
    storage = Storage.of_source(project, pipeline.sources[name])
    path = existing_path(project, pipeline, name)
    reader = session.readStream.format(source.format).options(**_options(storage, pipeline, name))
    read_as = _read_as(source, schema)
    try:
        frame = (reader if read_as is None else reader.schema(read_as)).load(path)
    except PySparkException as cause:
        raise refused_by_spark(pipeline, name, cause) or cause from None
    check_partitions(storage, pipeline, name, frame, schema)
    return _with_origin(_without(frame, unread), source)


def read_replayed_files(session: SparkSession, of: ReplayedSource, inferred: StructType | None) -> DataFrame:
    """Return the rows of the files that a replay reads as a batch, with the columns of `read_files`.

    Raises:
        RefusedError, SourceError: as `files_to_read`. SpecError: the schema does not parse.
    """
    return read_some_files(session, of.workspace.project, of.pipeline, of.name, files_to_read(of), inferred)


def read_some_files(
    session: SparkSession,
    project: Project,
    pipeline: Pipeline,
    name: str,
    paths: Sequence[str],
    inferred: StructType | None,
) -> DataFrame:
    """Return the rows of these files of a source as a batch, with the columns of `read_files`.

    Raises:
        SpecError: the schema does not parse.
    """
    source = pipeline.sources[name]
    storage = Storage.of_source(project, source)
    text = StructType([StructField("value", StringType())])
    schema = inferred or schema_of(pipeline, name) or text
    if not paths:
        return with_system_columns(session.createDataFrame([], schema))
    reader = session.read.format(source.format).options(**_options(storage, pipeline, name))
    reader = reader.schema(_read_as(source, schema) or schema)
    if not any(mark in str(source.path) for mark in "*?[{"):
        # Partition folders are those below it, as in FileStreamSource (optionsWithPartitionBasePath).
        reader = reader.option("basePath", storage.path(str(source.path)))
    # Turning DataSource.GLOB_PATHS_KEY off would make Spark 4.2 read the other files twice
    # (checkAndGlobPathIfNecessary).
    return _with_origin(reader.load([one_file(path) for path in paths]), source)


def _without(frame: DataFrame, unread: Sequence[str]) -> DataFrame:
    """Leave files out. Spark evaluates a condition on nothing but the path before it opens any file
    (PartitioningAwareFileIndex.matchFileMetadataPredicate, Spark 4.2)."""
    if not unread:
        return frame
    return frame.where(~as_plain_path(F.col("_metadata.file_path")).isin(list(unread)))


def _options(storage: Storage, pipeline: Pipeline, name: str) -> dict[str, str]:
    source, bounds = pipeline.sources[name], pipeline.bounds_of(name)
    given = {"pathGlobFilter": FINISHED_NAMES, **options(source)}
    if "sourceArchiveDir" in given:
        given["sourceArchiveDir"] = storage.path(given["sourceArchiveDir"])
    if source.format in _PARSED:
        # PERMISSIVE whatever the policy: Spark's DROPMALFORMED cannot count what it drops.
        given |= {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if source.format == "json":
        given = {"maxNestingDepth": str(bounds.nesting), **given}
    if source.format == "csv":
        own = {key.lower(): value for key, value in given.items()}
        given = {"maxColumns": str(csv_columns(own, bounds)), **given}
        if own.get("multiline", "").lower() == "true":
            # A quote that is never closed would take the rest of the file into one value.
            given = {"maxCharsPerColumn": str(bounds.record), **given}
    return given


def _read_as(source: Source, schema: StructType | None) -> StructType | None:
    return with_corrupt(schema) if schema is not None and source.format in _PARSED else schema


def _with_origin(frame: DataFrame, source: Source) -> DataFrame:
    # A line of text needs no parser, but later readers of the sink expect UTF-8.
    lines = "if(is_valid_utf8(value), null, value)" if source.format == "text" else None
    corrupt = CORRUPT if source.format in _PARSED else lines
    return with_system_columns(frame, corrupt=corrupt, file="_metadata.file_path")
