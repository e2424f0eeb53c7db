"""What the SQL in a pipeline's folder may do: read its own sources and compute.

Spark's SQL can do more: call any static Java method (reflect), open any file that the driver can
(text.`/etc/hosts`), run a program (SELECT TRANSFORM ... USING), and change tables, settings and the class
path by commands, which ``SparkSession.sql`` carries out at once. All of that is refused before anything
runs. Python in the folder is the user's program and not bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from py4j.java_gateway import is_instance_of
from pyspark.sql import SparkSession

from drawdown.errors import TransformError
from drawdown.spec import Pipeline

CONF = {"spark.sql.runSQLOnFiles": "false"}
"""Settings of every session that meets SQL of a pipeline."""

_CALLS_JAVA = ("reflect", "java_method", "try_reflect")
_LOGICAL = "org.apache.spark.sql.catalyst.plans.logical."
_COMMANDS = (_LOGICAL + "Command", _LOGICAL + "ParsedStatement")
# Neither of the two above (Spark 4.2.0): found by parsing each statement of Spark's SQL reference.
_MORE_COMMANDS = ("InsertIntoDir", "UnresolvedExecuteImmediate", "Call", "ScriptTransformation")
_SUBQUERY = "org.apache.spark.sql.catalyst.expressions.PlanExpression"


def confine(session: SparkSession) -> None:
    """Take the functions that call Java out of a session; files by name are off by CONF."""
    jvm = session._jvm
    assert jvm is not None
    some = jvm.scala.Option.apply
    registry = session._jsparkSession.sessionState().functionRegistry()
    for name in _CALLS_JAVA:
        identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(
            name, some("builtin"), some("system")
        )
        registry.dropFunction(identifier)


def refuse_commands(session: SparkSession, pipeline: Pipeline) -> None:
    """Refuse a transform.sql that is more than a query, before Spark carries it out.

    Raises:
        TransformError: ``transform.command``.
        ParseException: it is no SQL.
    """
    if name := command_in(session, pipeline.transform_text):
        raise TransformError(
            "transform.command",
            f"the transform of {pipeline.name} is more than a query: {name}",
            where=str(pipeline.folder / pipeline.transform),
            do="write one SELECT over the sources; `sink:` says where its rows go, and a transform.py"
            " may hold a function of your own",
        )


def command_in(session: SparkSession, text: str) -> str | None:
    """What in the SQL is more than a query, by Spark's name for it; None when nothing is.

    Raises:
        ParseException: it is no SQL.
    """
    plan = session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    for node in _everything(plan):
        name = str(node.getClass().getSimpleName()).rstrip("$")
        if name in _MORE_COMMANDS or any(_is(session, node, kind) for kind in _COMMANDS):
            return name
    return None


def refuse_wide_rules(session: SparkSession, pipeline: Pipeline) -> None:
    """A rule judges a row by the row: no subqueries.

    Raises:
        TransformError: ``rule.subquery``.
        ParseException: it is no expression.
    """
    for rule in pipeline.quality.rules:
        if asks_a_query(session, rule.check):
            raise TransformError(
                "rule.subquery",
                f"the rule {rule.name} of {pipeline.name} asks a query: {rule.check}",
                where=str(pipeline.folder / "quality.yaml"),
                do="judge a row by its own columns; compare with another table in the transform",
            )


def asks_a_query(session: SparkSession, expression: str) -> bool:
    """Whether an SQL expression holds a subquery. Raises ParseException when it is no expression."""
    parsed = session._jsparkSession.sessionState().sqlParser().parseExpression(expression)
    return any(_is(session, node, _SUBQUERY) for node in _below(parsed))


def _everything(plan: Any) -> Iterator[Any]:
    """Every node of a parsed plan, those of its subqueries and common table expressions too."""
    yield plan
    for part in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for i in range(part.size()):
            yield from _everything(part.apply(i))


def _below(expression: Any) -> Iterator[Any]:
    yield expression
    children = expression.children()
    for i in range(children.size()):
        yield from _below(children.apply(i))


def _is(session: SparkSession, java: Any, kind: str) -> bool:
    return bool(is_instance_of(session.sparkContext._gateway, java, kind))
