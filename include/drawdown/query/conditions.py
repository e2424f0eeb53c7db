"""Conditions on rows, of rules and of expectations: refused before anything is read when they do more."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.errors import TransformError
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_gate import asks_a_query
from drawdown.spec import Pipeline


def refuse_wide_conditions(session: SparkSession, pipeline: Pipeline) -> None:
    """A rule and a ``row_condition`` judge a row by the row: no queries in them.

    Raises:
        TransformError: ``rule.subquery``, ``expectation.subquery``; ``rule.refused``,
            ``expectation.refused``: it is no SQL.
    """
    where = str(pipeline.folder / "quality.yaml")
    for kind, name, condition in _conditions(pipeline):
        try:
            wide = asks_a_query(session, condition)
        except PySparkException as cause:
            raise TransformError(
                f"{kind}.refused",
                f"Spark refused the {kind} {name} of {pipeline.name}: {spark_sentence(cause)}",
                where=where,
                do=f"fix it: {condition[:200]!r} is to be one SQL condition over the columns of a row",
            ) from None
        if wide:
            raise TransformError(
                f"{kind}.subquery",
                f"the {kind} {name} of {pipeline.name} asks a query: {condition}",
                where=where,
                do="judge a row by its own columns; compare with another table in the transform,"
                " or under `queries:`",
            )


def _conditions(pipeline: Pipeline) -> Iterator[tuple[str, str, str]]:
    for rule in pipeline.quality.rules:
        yield "rule", rule.name, rule.check
    for expectation in pipeline.quality.expectations:
        if expectation.row_condition is not None:
            yield "expectation", expectation.id, expectation.row_condition
