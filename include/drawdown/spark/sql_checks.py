"""Holds SQL of a pipeline, parsed by Spark and not yet analysed, against the lists of sql_functions.toml.

drawdown.ParsedSql walks the parsed text. Names are compared, so a function that Spark has learnt since is
refused; and what the parser makes without a name, by the class of the expression.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark.sql import SparkSession

from drawdown.spark.java_classes import java_object
from drawdown.spark.sql_failures import as_refusal
from drawdown.spark.sql_functions import GROUPS, RECURSION, SqlRefusal, sql_functions
from drawdown.spec.sql_limits import SqlLimits

EXPRESSIONS = frozenset(
    {
        "Add",
        "AggregateExpression", "Alias", "And", "AnyValue", "AttributeReference", "BitwiseAnd", "BitwiseNot",
        "BitwiseOr", "BitwiseXor", "CaseWhen", "Cast", "Coalesce", "Collate", "Concat",
        "CreateNamedStruct", "Cube", "CurrentDate", "CurrentNamespace", "CurrentPath", "CurrentRow",
        "CurrentTime", "CurrentTimestamp", "CurrentUser", "Divide", "EqualNullSafe", "EqualTo",
        "Exists", "First", "FunctionTableSubqueryArgumentExpression", "GreaterThan",
        "GreaterThanOrEqual", "GroupingSets", "ILike", "In", "InSubquery", "IntegralDivide",
        "IsNotNull", "IsNotUnknown", "IsNull", "IsUnknown", "LambdaFunction", "Last", "LateralSubquery",
        "LessThan", "LessThanOrEqual", "Like", "LikeAll", "LikeAny", "ListQuery", "Literal", "Lower",
        "MultiAlias", "Multiply", "NamePlaceholder",
        "NamedArgumentExpression", "Not", "NotLikeAll", "NotLikeAny", "Or",
        "Overlay", "PipeExpression", "RLike", "Remainder", "Rollup", "ScalarSubquery",
        "SemiStructuredExtract", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned", "SortOrder",
        "SpecifiedWindowFrame", "StringLocate", "StringTrim", "StringTrimLeft", "StringTrimRight",
        "Substring", "Subtract", "TimestampAdd", "TimestampDiff", "UnaryMinus", "UnaryPositive",
        "UnboundedFollowing", "UnboundedPreceding", "UnresolvedAlias", "UnresolvedAttribute",
        "UnresolvedCollation", "UnresolvedExtractValue", "UnresolvedFunction", "UnresolvedGenerator",
        "UnresolvedNamedLambdaVariable", "UnresolvedOrdinal", "UnresolvedPipeAggregateOrdinal",
        "UnresolvedRegex", "UnresolvedStar", "UnresolvedStarExceptOrReplace",
        "UnresolvedWindowExpression", "UnspecifiedFrame", "WindowExpression", "WindowSpecDefinition",
        "WindowSpecReference",
    }
)  # fmt: skip
"""The expressions that Spark 4.2's parser makes from queries, by class. All others are refused."""


@as_refusal()
def refused_unparsed(session: SparkSession, text: str) -> SqlRefusal | None:
    """Return what in a text must not even be parsed: a CUBE whose sets would fill the memory."""
    walker = _walker(session.sparkContext._gateway, SqlLimits().partitions)
    sets = 2.0 ** min(int(walker.widestCube(text)), 1000)
    return sql_functions().refusal("groups", "", f"{sets:.0f}", 0) if sets > GROUPS else None


@as_refusal()
def refused_in_query(session: SparkSession, text: str, limits: SqlLimits | None = None) -> SqlRefusal | None:
    """Return the first call, option, hint or expression of a query that is on no list; None without one.

    Raises:
        ParseException: the text is not valid SQL.
    """
    return _refused(session, _parser(session).parsePlan(text), limits or SqlLimits())


@as_refusal()
def refused_in_condition(session: SparkSession, text: str) -> SqlRefusal | None:
    """Return the same of an expression."""
    return _refused(session, _parser(session).parseExpression(text), SqlLimits())


def is_large_avro(session: SparkSession, schema: str) -> bool:
    """Whether an Avro schema has more than 10,000 fields once each name in it is written out."""
    return bool(_walker(session.sparkContext._gateway, SqlLimits().partitions).isLargeAvro(schema))


def _parser(session: SparkSession) -> Any:
    return session._jsparkSession.sessionState().sqlParser()


def _refused(session: SparkSession, parsed: Any, limits: SqlLimits) -> SqlRefusal | None:
    gateway = session.sparkContext._gateway
    found = _walker(gateway, limits.partitions).beyond(parsed)
    if found is None:
        return None
    kind, name, more = (str(each) for each in found)
    return sql_functions().refusal(kind, name, more, limits.partitions)


@cache
def _walker(gateway: JavaGateway, partitions: int) -> Any:
    known = sql_functions()
    options = (
        " ".join([name, str(each.at), *(key.lower() for key in each.keys)])
        for name, each in known.options.items()
    )
    schemas = (f"{name} {each.at} {each.form}" for name, each in known.schemas.items())
    # Texts of lines: a call to the JVM for each of 600 names would take a tenth of a second.
    lists = (EXPRESSIONS, known.allowed, known.allowed_tables, known.growing, options, schemas, known.hints)
    return java_object(
        gateway, "ParsedSql", *("\n".join(each) for each in lists), partitions, RECURSION, GROUPS
    )
