"""Partition folders (``day=2024-01-01``) of file sources: their columns must be declared and stay the same.

Source: "Schema inference and partition of streaming DataFrames/Datasets" of Spark's guide. Spark reads the
folders again at each start, and must find the columns that the query began with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from drawdown.errors import DrawdownError, RefusedError, SourceError, SpecError
from drawdown.sources.files.all_files import list_source_files
from drawdown.sources.files.notified.spark_arrived import told_arrived
from drawdown.sources.files.spark_rising import listed_behind
from drawdown.spark.sentences import spark_sentence
from drawdown.spec import Pipeline
from drawdown.storage import Storage

_LISTED = re.compile(r"Partition column name list #\d+: (.*)")


def check_partitions(
    storage: Storage, pipeline: Pipeline, name: str, frame: DataFrame, schema: StructType | None
) -> None:
    """Check a source's folders; costs one listing when there are partition folders, else nothing.

    Raises:
        SpecError: ``source.partition-undeclared``: Spark would guess the column's type at each start.
        RefusedError: ``source.partition-columns``: a file is in other partition folders than the rest.
    """
    columns = _partition_columns(frame)
    if not columns:
        return
    source = pipeline.sources[name]
    declared = {column.lower() for column in schema.fieldNames()} if schema is not None else set()
    if undeclared := [column for column in columns if column.lower() not in declared]:
        raise SpecError(
            "source.partition-undeclared",
            f"the folders of source {name} of {pipeline.name} are partitions by {', '.join(columns)}, but"
            f" its schema has no {', '.join(undeclared)}: Spark would guess the type again in each run",
            where=storage.path(source.path or ""),
            do=f"add `{undeclared[0]} STRING` (or DATE, INT ...) to the schema",
        )
    given = {option.lower(): value for option, value in source.options.items()}
    after = listed_behind(frame.sparkSession, name)
    paths = told_arrived(frame.sparkSession, name)
    if paths is None:
        paths = [info.path for info in list_source_files(storage, source.path or "", given, after)]
    for path in paths:
        found = _scheme(path[len(storage.path(source.path or "")) :].rpartition("/")[0])
        if list(found) != columns:
            raise _changed(pipeline, name, [columns, found], path)


def refused_by_spark(pipeline: Pipeline, name: str, cause: PySparkException) -> DrawdownError | None:
    """Return Spark's refusal of a source's partition folders as an error; None for any other failure."""
    said = str(cause)
    if cause.getCondition() == "CONFLICTING_PARTITION_COLUMN_NAMES":
        lists = [line.split(", ") for line in _LISTED.findall(said)]
        folders = [line.strip() for line in said.splitlines() if line.startswith("\t") and "/" in line]
        return _changed(pipeline, name, lists, _odd_one([f.split(" SQLSTATE")[0] for f in folders]))
    if cause.getCondition() == "INVALID_PARTITION_VALUE":
        return SourceError(
            "source.partition-value",
            f"source {name} of {pipeline.name}: {spark_sentence(cause)}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="rename the folder, or declare the column as STRING",
        )
    return None


def _odd_one(folders: Sequence[str]) -> str:
    """Return a folder with the rarest partition columns; Spark names the folders in no order."""
    schemes = Counter(_scheme(folder) for folder in folders)
    return min(folders, key=lambda folder: (schemes[_scheme(folder)], folder), default="")


def _scheme(folder: str) -> tuple[str, ...]:
    return tuple(part.split("=", 1)[0] for part in folder.split("/") if "=" in part)


def _changed(pipeline: Pipeline, name: str, lists: Sequence[Sequence[str]], where: str) -> RefusedError:
    kinds = ", others ".join(
        f"by {', '.join(columns)}" if columns else "in no partition folder" for columns in lists
    )
    return RefusedError(
        "source.partition-columns",
        f"the partition columns of source {name} of {pipeline.name} changed: some files are partitioned"
        f" {kinds}; the partitioning scheme must remain static",
        where=where,
        do="move the files into folders of the scheme that the source began with, or read them as a source"
        " of their own",
    )


def _partition_columns(frame: DataFrame) -> list[str]:
    """Return the columns that Spark found, from the StreamingRelation that a reader's load() returns."""
    found = frame._jdf.queryExecution().analyzed().dataSource().sourceInfo().partitionColumns()
    return [str(found.apply(i)) for i in range(found.size())]
