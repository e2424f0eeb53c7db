"""Schemas of sources and of the sink: that they are DDL, and that watermarks are on times they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from drawdown.spec.reading.yaml_source import KeyPath
from drawdown.static_checks.places import Places
from drawdown.static_checks.relation import Relation
from drawdown.static_checks.unknown_names import unknown_column
from drawdown.values.ddl import NotDdlError, columns, first_twice

_TIMES = ("timestamp", "timestamp_ntz")


def check_schemas(pipeline: Pipeline, places: Places) -> Iterator[SpecError]:
    """``schema.unreadable``, ``schema.column-twice``"""
    for name, source in pipeline.sources.items():
        if source.schema_ddl is not None and not str(source.schema_file).endswith(".avsc"):
            at = ("sources", name)
            yield from _check(f"source {name}", source.schema_ddl, places, at, source.schema_file)
    sink = pipeline.sink
    if sink.schema_ddl is not None:
        yield from _check("the sink", sink.schema_ddl, places, ("sink",), sink.schema_file)


def check_watermarks(
    pipeline: Pipeline, known: Mapping[str, Relation], places: Places
) -> Iterator[SpecError]:
    """``spec.unknown-column``, ``spec.watermark-type``"""
    for name, source in pipeline.watermarked_sources.items():
        column = source.watermark.column if source.watermark else ""
        where = places.key("pipeline.yaml", "sources", name, "watermark", "column")
        found = known[name].find(column)
        if found is None and known[name].whole:
            yield unknown_column(f"the watermark of source {name}", column, known[name].names, where)
        elif found is not None and found.type not in (*_TIMES, ""):
            yield SpecError(
                "spec.watermark-type",
                f"the watermark of source {name} is on {column}, which is {found.type.upper()}: Spark takes a"
                " TIMESTAMP only",
                where=where,
                do=f"declare {column} as TIMESTAMP in the schema, or name a column that is one",
            )


def _check(owner: str, ddl: str, places: Places, at: KeyPath, file: str | None) -> Iterator[SpecError]:
    try:
        found = columns(ddl)
    except NotDdlError as error:
        where = places.schema(at, file, error.line)
        yield SpecError(
            "schema.unreadable", f"the schema of {owner} is not DDL: {error.what}", where=where, do=error.do
        )
        return
    if not found:
        yield SpecError(
            "schema.unreadable",
            f"the schema of {owner} has no column",
            where=places.schema(at, file, 1),
            do="write `name TYPE, name TYPE`",
        )
    if twice := first_twice(found):
        yield SpecError(
            "schema.column-twice",
            f"the schema of {owner} has the column {twice.name} twice; upper and lower case are the same to"
            " Spark",
            where=places.schema(at, file, twice.line),
            do="rename or remove one of them",
        )
