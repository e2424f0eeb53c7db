"""Infer schemas from the data: the first run stores them beside the checkpoint, later runs use them.

So a later file with more columns changes nothing, and a query restarts with the schema of its state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from drawdown.checkpoint import plain_path
from drawdown.errors import RefusedError, SourceError
from drawdown.layout import schemas_of
from drawdown.sources.existing_path import existing_path
from drawdown.sources.files.all_files import list_source_files
from drawdown.sources.files.kind import whole_options
from drawdown.sources.files.names import one_file
from drawdown.sources.files.spark_partitions import refused_by_spark
from drawdown.sources.spark_system_columns import CORRUPT, options
from drawdown.spark.declared_schema import parse_ddl
from drawdown.spec import Pipeline, Project, Source
from drawdown.storage import Storage
from drawdown.workspace import Generation


def found_schemas(
    session: SparkSession, generation: Generation, unread: Mapping[str, Sequence[str]] | None = None
) -> dict[str, StructType]:
    """Return the schema of each source that asks for one: as an earlier run stored it, else from the files.

    Args:
        unread: by source, the files that are not opened.

    Raises:
        SourceError: ``source.nothing-to-infer``: there is no data to infer from.
        RefusedError: ``source.schema-lost``: there is a checkpoint, whose query may have another schema.
    """
    found = {}
    for name, source in generation.pipeline.sources.items():
        if source.infer_schema:
            kept = _kept(generation, name)
            without = (unread or {}).get(name, ())
            found[name] = kept or _inferred(session, generation.project, generation.pipeline, name, without)
    return found


def keep_schemas(generation: Generation, found: Mapping[str, StructType]) -> None:
    """Store schemas that are not stored yet; call it before the first run creates the checkpoint."""
    for name, schema in found.items():
        file = _file(generation.pipeline, generation.number, name)
        if not generation.storage.exists(file):
            generation.storage.write_atomic(file, f"{schema.toDDL()}\n".encode())


def _file(pipeline: Pipeline, generation: int, name: str) -> str:
    return f"{schemas_of(pipeline.name, generation)}/{name}.ddl"


def _kept(generation: Generation, name: str) -> StructType | None:
    storage, pipeline = generation.storage, generation.pipeline
    file = _file(pipeline, generation.number, name)
    if not storage.exists(file):
        if storage.exists(generation.path):
            raise RefusedError(
                "source.schema-lost",
                f"the schema that the first run of {pipeline.name} inferred for source {name} is missing",
                where=storage.path(file),
                do="bring it back, or write the columns that the checkpoint's query reads into it as DDL",
            )
        return None
    text = storage.read_bytes(file).decode(errors="replace")
    return parse_ddl(text, f"the inferred schema of source {name} of {pipeline.name}", storage.path(file))


def _inferred(
    session: SparkSession, project: Project, pipeline: Pipeline, name: str, unread: Sequence[str]
) -> StructType:
    source = pipeline.sources[name]
    path = existing_path(project, pipeline, name)
    known = whole_options(source.format)
    given = {key: value for key, value in options(source).items() if key in known}
    if source.format == "csv":
        given["inferSchema"] = "true"
    if source.format == "json":
        given = {"maxNestingDepth": str(pipeline.bounds_of(name).nesting), **given}
    if source.is_parsed:
        given["columnNameOfCorruptRecord"] = CORRUPT
    try:
        reader = session.read.format(source.format).options(**given)
        schema = reader.load(_readable(project, source, unread) if unread else path).schema
    except PySparkException as cause:
        if cause.getCondition() not in ("UNABLE_TO_INFER_SCHEMA", "PATH_NOT_FOUND"):
            raise refused_by_spark(pipeline, name, cause) or cause from None
        schema = StructType()
    columns = [field for field in schema.fields if field.name != CORRUPT]
    if not columns:
        raise SourceError(
            "source.nothing-to-infer",
            f"source {name} of {pipeline.name} infers its schema, but there is no data to infer it from",
            where=path,
            do="wait for the first files, or declare the columns: `schema: schemas/x.ddl`",
        )
    return StructType(columns)


def _readable(project: Project, source: Source, unread: Sequence[str]) -> list[str]:
    """Return the files of a source without these, as patterns that match one file each."""
    given = {option.lower(): value for option, value in source.options.items()}
    found = list_source_files(Storage.of_source(project, source), source.path or "", given)
    left = [info.path for info in found if plain_path(info.path) not in set(unread)]
    return [one_file(path) for path in left]
