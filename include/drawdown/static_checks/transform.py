"""transform.sql: it is a query, its tables and columns are there, and its output fits the sink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from drawdown.static_checks.names import missing_columns, missing_tables
from drawdown.static_checks.outputs import Outputs
from drawdown.static_checks.places import Places
from drawdown.static_checks.relation import UNKNOWN, Relation
from drawdown.static_checks.sources import declared
from drawdown.static_checks.sql_calls import refused_calls
from drawdown.static_checks.sql_parsing import NotSqlError, parse_query
from drawdown.values.column import Column
from drawdown.values.nearest import did_you_mean

_ALIKE = "make the columns of the query and of the sink's schema agree in name and type; the order is free"


def check_transform(pipeline: Pipeline, known: Mapping[str, Relation], places: Places) -> Iterator[SpecError]:
    """``transform.not-sql``, ``transform.unknown-source``, ``transform.unknown-column``, ``transform.output``
    and ``sql.reaches-out``

    A name of more than one part belongs to the catalog, which no SQL of a pipeline reads.
    """
    file = pipeline.transform
    if not file.endswith(".sql"):
        return
    for refusal, line in refused_calls(pipeline.transform_text):
        yield SpecError(
            "sql.reaches-out", f"{file} {refusal.what}", where=places.line(file, line), do=refusal.do
        )
    try:
        query = parse_query(pipeline.transform_text)
    except NotSqlError as error:
        yield SpecError(
            "transform.not-sql",
            f"{file}: {error.what}",
            where=places.line(file, error.line),
            do="write one SELECT over the sources",
        )
        return
    if query is None:
        return
    unread = list(_unread(query, known, places))
    yield from unread
    if not unread:
        yield from _check_output(pipeline, Outputs(known).of_query(query), places)


def _unread(query: exp.Expr, known: Mapping[str, Relation], places: Places) -> Iterator[SpecError]:
    file = places.pipeline.transform
    for table in missing_tables(query, known):
        near = did_you_mean(table.name.rpartition(".")[2], table.known)
        yield SpecError(
            "transform.unknown-source",
            f"{file} reads {table.name}, and no source has that name; {near}",
            where=places.line(file, table.line),
            do="correct the name, or add the source to pipeline.yaml",
        )
    for column in missing_columns(query, Outputs(known)):
        near = did_you_mean(column.name.split(".")[-1], column.known)
        yield SpecError(
            "transform.unknown-column",
            f"{file} names the column {column.name}, which is not there; {near}",
            where=places.line(file, column.line),
            do="correct the name, or add the column to the schema of the source",
        )


def output_of(pipeline: Pipeline, known: Mapping[str, Relation]) -> Relation:
    """The columns that transform.sql gives; UNKNOWN when only Spark can tell."""
    if not pipeline.transform.endswith(".sql"):
        return UNKNOWN
    try:
        query = parse_query(pipeline.transform_text)
    except NotSqlError:
        return UNKNOWN
    return UNKNOWN if query is None else Outputs(known).of_query(query)


def _check_output(pipeline: Pipeline, output: Relation, places: Places) -> Iterator[SpecError]:
    sink = declared(pipeline.sink.schema_ddl)
    if not (sink.whole and output.whole):
        return
    wanted = {each.name: each for each in sink.columns}
    given = {each.name: each for each in output.columns}
    problems = [(f"{name} is missing{_near(name, given, wanted)}", 1) for name in wanted if name not in given]
    problems += [
        (f"{name} is not in the schema{_near(name, wanted, given)}", each.line)
        for name, each in given.items()
        if name not in wanted
    ]
    problems += _of_another_type(wanted, given)
    if problems:
        what = "; ".join(what for what, _ in problems)
        yield SpecError(
            "transform.output",
            f"the output of {pipeline.transform} does not fit the schema of the sink: {what}",
            where=places.line(pipeline.transform, max(line for _, line in problems[:1])),
            do=_ALIKE,
        )


def _near(name: str, others: Mapping[str, Column], known: Mapping[str, Column]) -> str:
    free = [each for each in others if each not in known]
    said = did_you_mean(name, free)
    return f" ({said})" if said.startswith("did you mean") else ""


def _of_another_type(wanted: Mapping[str, Column], given: Mapping[str, Column]) -> list[tuple[str, int]]:
    found = []
    for name, column in given.items():
        other = wanted.get(name)
        if other is None or not column.type or not other.type or column.type == other.type:
            continue
        if any(odd in f"{column.type} {other.type}" for odd in ("char(", "collate", "struct<")):
            continue
        found.append((f"{name} is {column.type.upper()} and not {other.type.upper()}", column.line))
    return found
