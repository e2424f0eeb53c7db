"""What the SQL in a pipeline's folder may do: read its own sources and compute.

Spark's SQL can do more: call any static Java method (reflect), open any file that the driver can
(text.`/etc/hosts`), run a program (SELECT TRANSFORM ... USING), and change tables, settings and the class
path by commands, which ``SparkSession.sql`` carries out at once. So every text is checked here before Spark
analyses it: a query may only contain plans that read and compute, and an expression may contain no query.
Python in the folder is the user's program and is not restricted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from drawdown.spark.gateway import jvm_of
from drawdown.spark.java_classes import java_object, java_set
from drawdown.spark.sql_failures import as_refusal

CONF: Mapping[str, str] = {
    "spark.sql.runSQLOnFiles": "false",
    # ${env:NAME} in a text would insert values of the driver's environment, including passwords.
    "spark.sql.variable.substitute": "false",
}
"""Settings of every session that runs SQL of a pipeline."""

# Functions that call Java; and Delta's, which open any table by its path.
_FUNCTIONS = ("reflect", "java_method", "try_reflect")
_TABLE_FUNCTIONS = ("table_changes", "table_changes_by_path", "python_worker_logs")

READ_AND_COMPUTE = frozenset(
    {
        "Aggregate",
        "Distinct",
        "Except",
        "Filter",
        "Generate",
        "GlobalLimit",
        "Intersect",
        "Join",
        "LateralJoin",
        "LocalLimit",
        "LocalRelation",
        "NamedStreamingRelation",
        "Offset",
        "OneRowRelation",
        "PipeOperator",
        "Pivot",
        "Project",
        "RelationTimeTravel",
        "Repartition",
        "RepartitionByExpression",
        "Sample",
        "Sort",
        "SubqueryAlias",
        "Union",
        "Unpivot",
        "UnresolvedHaving",
        "UnresolvedHint",
        "UnresolvedInlineTable",
        "UnresolvedQualify",
        "UnresolvedRelation",
        "UnresolvedSubqueryColumnAliases",
        "UnresolvedTVFAliases",
        "UnresolvedTableValuedFunction",
        "UnresolvedWith",
        "WithWindowDefinition",
    }
)
"""The plans that Spark 4.2's parser makes from queries, by class. All others are refused."""


def confine(session: SparkSession) -> None:
    """Remove functions from a session that reach beyond the pipeline's own data; CONF does the rest."""
    jvm = jvm_of(session)
    some = jvm.scala.Option.apply
    state = session._jsparkSession.sessionState()
    for registry, names in (
        (state.functionRegistry(), _FUNCTIONS),
        (state.tableFunctionRegistry(), _TABLE_FUNCTIONS),
    ):
        for name in names:
            identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
            registry.dropFunction(identifier(name, some("builtin"), some("system")))


@as_refusal()
def more_than_a_query(session: SparkSession, text: str) -> str | None:
    """Return Spark's name for what in the SQL does more than read and compute; None when nothing does.

    Raises:
        ParseException: the text is not valid SQL.
    """
    return _first_other(session, _parser(session).parsePlan(text), READ_AND_COMPUTE)


@as_refusal()
def asks_a_query(session: SparkSession, expression: str) -> bool:
    """Whether an SQL expression contains a query. Raises ParseException when it is not an expression."""
    return _first_other(session, _parser(session).parseExpression(expression), frozenset()) is not None


def executes(frame: DataFrame) -> str | None:
    """Return a command or script in the analysed plan of a user's SQL, which parsing should rule out."""
    found: str | None = _gate(frame.sparkSession).executes(frame._jdf.queryExecution().analyzed())
    return found


def _parser(session: SparkSession) -> Any:
    return session._jsparkSession.sessionState().sqlParser()


def _first_other(session: SparkSession, parsed: Any, allowed: frozenset[str]) -> str | None:
    """Return the first plan in the parsed text that is not allowed."""
    found: str | None = _gate(session).firstOther(parsed, java_set(session.sparkContext._gateway, allowed))
    return found


def _gate(session: SparkSession) -> Any:
    return java_object(session.sparkContext._gateway, "SqlGate")
