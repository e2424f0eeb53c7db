"""Conditions of rules and expectations: refused, before anything is read, unless they test a single row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from drawdown.errors import TransformError
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_bounds import is_too_large, too_large
from drawdown.spark.sql_checks import refused_in_condition
from drawdown.spark.sql_failures import as_refusal
from drawdown.spark.sql_gate import asks_a_query
from drawdown.spec import Pipeline
from drawdown.static_checks.places import QUALITY, Places


def refuse_wide_conditions(session: SparkSession, pipeline: Pipeline) -> None:
    """Refuse a rule or a ``row_condition`` with a subquery: it may use nothing but the row.

    Raises:
        TransformError: ``rule.subquery``, ``expectation.subquery``; ``rule.refused``,
            ``expectation.refused``: it is not valid SQL; ``sql.*``: it calls what is on no list.
    """
    places = Places(pipeline)
    for each in _conditions(pipeline):
        kind, name = each.kind, each.name
        try:
            wide = asks_a_query(session, each.sql)
            refusal = None if wide else refused_in_condition(session, each.sql)
        except PySparkException as cause:
            raise TransformError(
                f"{kind}.refused",
                f"Spark refused the {kind} {name} of {pipeline.name}: {spark_sentence(cause)}",
                where=places.key(QUALITY, *each.path),
                do=f"fix it: {each.sql[:200]!r} must be one SQL condition over the columns of a row",
            ) from None
        if refusal:
            what = f"the {kind} {name} of {pipeline.name} {refusal.what}"
            raise TransformError(refusal.id, what, where=places.key(QUALITY, *each.path), do=refusal.do)
        if wide:
            raise TransformError(
                f"{kind}.subquery",
                f"the {kind} {name} of {pipeline.name} asks a query: {each.sql}",
                where=places.key(QUALITY, *each.path),
                do="judge a row by its own columns; compare with another table in the transform,"
                " or under `queries:`",
            )


def refuse_unfit_conditions(session: SparkSession, pipeline: Pipeline, schema: StructType) -> None:
    """A ``row_condition`` chooses among the rows of the sink, by their columns.

    Raises:
        TransformError: ``expectation.refused``
    """
    for each in _conditions(pipeline):
        if each.kind != "expectation":
            continue
        try:
            with as_refusal():
                session.createDataFrame([], schema).where(each.sql)
        except PySparkException as cause:
            if is_too_large(str(cause)):
                where = Places(pipeline).key(QUALITY, *each.path)
                raise too_large(f"the expectation {each.name} of {pipeline.name}", cause, where) from None
            raise TransformError(
                "expectation.refused",
                f"Spark refused the row_condition of {each.name} of {pipeline.name}: {spark_sentence(cause)}",
                where=Places(pipeline).key(QUALITY, *each.path),
                do="correct it; it sees the columns of the sink",
            ) from None


def refused_rule(pipeline: Pipeline, source: str, rows: DataFrame, cause: PySparkException) -> TransformError:
    """The error of the rule of a source that Spark does not take over these rows."""
    for index, rule in enumerate(pipeline.quality.rules):
        if rule not in pipeline.rules_of(source):
            continue
        try:
            with as_refusal():
                rows.where(rule.check)
        except PySparkException as own:
            return _rule_refused(pipeline, f"rule {rule.name}", ("rules", index, "check"), own)
    return _rule_refused(pipeline, f"a rule of source {source}", ("rules",), cause)


def _rule_refused(
    pipeline: Pipeline, rule: str, path: tuple[str | int, ...], cause: PySparkException
) -> TransformError:
    if is_too_large(str(cause)):
        return too_large(f"{rule} of {pipeline.name}", cause, Places(pipeline).key(QUALITY, *path))
    return TransformError(
        "rule.refused",
        f"Spark refused {rule} of {pipeline.name}: {spark_sentence(cause)}",
        where=Places(pipeline).key(QUALITY, *path),
        do="fix the rule: its `check` is one SQL condition over the columns of the source",
    )


@dataclass(frozen=True)
class _Condition:
    """The SQL of a rule or of an expectation's ``row_condition``, and its path in quality.yaml."""

    kind: str
    name: str
    path: tuple[str | int, ...]
    sql: str


def _conditions(pipeline: Pipeline) -> Iterator[_Condition]:
    for index, rule in enumerate(pipeline.quality.rules):
        yield _Condition("rule", rule.name, ("rules", index, "check"), rule.check)
    for index, expectation in enumerate(pipeline.quality.expectations):
        if expectation.row_condition is not None:
            path = ("expectations", index, "kwargs", "row_condition")
            yield _Condition("expectation", expectation.id, path, expectation.row_condition)
