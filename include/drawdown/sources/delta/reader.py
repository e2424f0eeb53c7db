"""Delta sources: a table of this project, by path or by name, as a stream of the rows appended to it."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import SpecError
from drawdown.sources.delta.replay import version_to_read
from drawdown.sources.existing_path import existing_path
from drawdown.sources.replay_basis import ReplayedSource
from drawdown.sources.spark_system_columns import options, with_system_columns
from drawdown.spark.tables import know_table
from drawdown.spec import Pipeline, Project

# Options that say what happens to rows that change after they were read.
_TAKES_CHANGES = frozenset({"readChangeFeed", "skipChangeCommits", "ignoreChanges"})


def read_delta(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> DataFrame:
    """Return the rows appended to a table, as a stream.

    Raises:
        SourceError: there is no table.
        SpecError: ``source.changing-table``.
    """
    source = pipeline.sources[name]
    path = existing_path(project, pipeline, name)
    if not _TAKES_CHANGES & source.options.keys():
        _refuse_changing(path, pipeline, name)
    reader = session.readStream.options(**options(source))
    if source.format == "table":
        return with_system_columns(reader.table(known_table(session, project, pipeline, name)))
    return with_system_columns(reader.format("delta").load(path))


def read_replayed_version(session: SparkSession, of: ReplayedSource, _: StructType | None) -> DataFrame:
    """Return the rows of the version that a replay reads, with the columns of `read_delta`.

    Raises:
        RefusedError, SourceError: as `version_to_read`.
    """
    version = version_to_read(of)
    path = existing_path(of.workspace.project, of.pipeline, of.name)
    now = session.read.format("delta").load(path).where(F.lit(False))
    if version is None:
        return with_system_columns(now)
    then = session.read.format("delta").option("versionAsOf", version).load(path)
    # The stream's schema has columns that were added to the table since.
    return with_system_columns(now.unionByName(then, allowMissingColumns=True))


def known_table(session: SparkSession, project: Project, pipeline: Pipeline, name: str) -> str:
    """Register a source's table in Spark's catalog, and return its name there.

    Raises:
        SourceError: there is no table. RefusedError: ``sink.table-taken``.
    """
    table = str(pipeline.sources[name].table)
    know_table(session, table, existing_path(project, pipeline, name))
    return table


def _refuse_changing(path: str, pipeline: Pipeline, name: str) -> None:
    """Refuse a table whose rows change: Spark would fail at the first commit that changes one.

    DELTA_SOURCE_TABLE_IGNORE_CHANGES: a MERGE or an overwrite rewrites rows that were read before.
    """
    table = DeltaTableFiles(path)
    mode = table.configuration.get("drawdown.mode", "append") if table.exists() else "append"
    if mode != "append":
        raise SpecError(
            "source.changing-table",
            f"source {name} of {pipeline.name} would stream a table that is written in {mode} mode, whose"
            " commits change rows that were already read: a stream accepts only appended rows",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="read it with `static: true`; or stream its changes with `options: {readChangeFeed: true}`"
            " (its sink then needs `options: {delta.enableChangeDataFeed: true}` from its first run)",
        )
