"""The SQL of quality.yaml: rules, row conditions of expectations, queries over the slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from drawdown.errors import SpecError
from drawdown.spec import Pipeline
from drawdown.spec.quality import SLICE
from drawdown.static_checks.names import Missing, missing_columns, missing_tables
from drawdown.static_checks.outputs import Outputs
from drawdown.static_checks.places import QUALITY, Places
from drawdown.static_checks.relation import Relation
from drawdown.static_checks.sql_calls import refused_condition
from drawdown.static_checks.sql_parsing import ROWS, NotSqlError, parse_condition, parse_query
from drawdown.static_checks.unknown_names import unknown_column
from drawdown.values.nearest import did_you_mean


def check_rules(pipeline: Pipeline, known: Mapping[str, Relation], places: Places) -> Iterator[SpecError]:
    """``rule.not-sql``, ``spec.unknown-column``, ``sql.reaches-out``"""
    for index, rule in enumerate(pipeline.quality.rules):
        source = rule.source or next(iter(pipeline.streaming_sources))
        where = places.key(QUALITY, "rules", index, "check")
        yield from refused_condition(f"rule {rule.name}", rule.check, where)
        try:
            yield from _check_condition(f"rule {rule.name}", rule.check, known[source], where)
        except NotSqlError as error:
            yield SpecError(
                "rule.not-sql",
                f"rule {rule.name}: {error.what}",
                where=where,
                do=f"write one SQL condition over the columns of source {source}",
            )


def check_row_conditions(pipeline: Pipeline, rows: Relation, places: Places) -> Iterator[SpecError]:
    """``expectation.not-sql``, ``spec.unknown-column``, ``sql.reaches-out``"""
    for index, each in enumerate(pipeline.quality.expectations):
        if each.row_condition is None:
            continue
        where = places.key(QUALITY, "expectations", index, "kwargs", "row_condition")
        yield from refused_condition(f"the expectation {each.id}", each.row_condition, where)
        try:
            yield from _check_condition(f"the expectation {each.id}", each.row_condition, rows, where)
        except NotSqlError as error:
            yield SpecError(
                "expectation.not-sql",
                f"the row_condition of {each.id}: {error.what}",
                where=where,
                do="write one SQL condition over the columns of the sink",
            )


def check_queries(
    pipeline: Pipeline, known: Mapping[str, Relation], rows: Relation, places: Places
) -> Iterator[SpecError]:
    """``query.not-sql``, ``query.unknown-table``, ``spec.unknown-column``, ``sql.reaches-out``"""
    tables = {name: known[name] for name in pipeline.static_sources} | {SLICE: rows}
    for index, each in enumerate(pipeline.quality.queries):
        where = places.key(QUALITY, "queries", index, "unexpected")
        yield from refused_condition(f"the query {each.name}", each.unexpected, where)
        try:
            query = parse_query(each.unexpected)
        except NotSqlError as error:
            yield SpecError(
                "query.not-sql",
                f"the query {each.name}: {error.what}",
                where=where,
                do=f"write one SELECT of the unexpected rows of `{SLICE}`",
            )
            continue
        if query is None:
            continue
        for missing in missing_tables(query, tables, frozenset(pipeline.streaming_sources)):
            yield SpecError(
                "query.unknown-table",
                f"the query {each.name} reads {missing.name}, which is not there;"
                f" {did_you_mean(missing.name, missing.known)}",
                where=where,
                do=f"read `{SLICE}`, which has the sink's columns, or a static source",
            )
        yield from _unknown(f"the query {each.name}", missing_columns(query, Outputs(tables)), where)


def _check_condition(owner: str, condition: str, rows: Relation, where: str) -> Iterator[SpecError]:
    query = parse_condition(condition)
    if query is None or len(list(query.find_all(exp.Query))) > 1:
        # What asks a query is refused by the plan, with a sentence of its own.
        return
    yield from _unknown(owner, missing_columns(query, Outputs({ROWS: rows})), where)


def _unknown(owner: str, missing: Iterable[Missing], where: str) -> Iterator[SpecError]:
    for each in missing:
        yield unknown_column(owner, each.name, each.known, where)
