"""Bounds the size of what SQL functions make, in the session that resolves SQL of a pipeline.

drawdown.GuardedFunctions takes the place of the builders of the functions that grow (sql_functions.toml).
Texts alone are bounded: functions of Python are the user's program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from drawdown.errors import TransformError
from drawdown.spark.java_classes import java_object
from drawdown.spark.sentences import spark_sentence
from drawdown.spark.sql_functions import sql_functions
from drawdown.spec.sql_limits import SqlLimits

MARK = "sql_limits: {"
"""In the message of each bound, and so in the text of an expression that has one."""
SIZE = "sql.size"
REMEDY = (
    "make it smaller, or raise the limit in include/project.yaml; functions called in transform.py have none"
)
_SAID = (", and the limit is ", "so that its size can be checked")


def bound_functions(session: SparkSession, limits: SqlLimits) -> None:
    """Bound the growing functions of a session by these limits."""
    guards = _guards(session.sparkContext._gateway, limits)
    known = sql_functions()
    state = session._jsparkSession.sessionState()
    guards.bind(state.functionRegistry(), _growing(known.scalar))
    guards.bind(state.tableFunctionRegistry(), _growing(known.tables))


def without_bounds(expression: Any) -> Any:
    """Return an expression of a plan (Java Expression) as it would be without bounds.

    State is compared by what the user wrote: a checkpoint from before the bounds goes on.
    """
    return _guards(SparkContext._gateway, SqlLimits()).unbounded(expression)


@cache
def _guards(gateway: JavaGateway | None, limits: SqlLimits) -> Any:
    return java_object(gateway, "GuardedFunctions", limits.text_bytes, limits.elements, limits.partitions)


def _growing(known: Mapping[str, str]) -> str:
    return "\n".join(name for name, kind in known.items() if kind == "grows")


def is_too_large(text: str) -> bool:
    """Whether a text of Spark's is the message of a bound."""
    return any(mark in text for mark in _SAID)


def too_large(subject: str, cause: PySparkException, where: str) -> TransformError:
    """Return the error ``sql.size`` of SQL that a bound has refused while it was analysed."""
    sentence = spark_sentence(cause).split("; line ")[0]
    return TransformError(SIZE, f"{subject}: {sentence}", where=where, do=REMEDY)
