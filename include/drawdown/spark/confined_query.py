"""Analyses a query of a pipeline's folder: it computes over the views that it is given and reads no more.

What it may call, hint and generate is on the lists of sql_functions.toml (sql_checks.py).

Spark looks a name up among the temporary views, and then in its catalog, where the tables of other pipelines
and, with a Hive or Glue catalog, of everybody are. So the relations of a text are compared with the views
before Spark resolves any, and the leaves of the analysed plan are once more: whatever way Spark has found
from a name to a table, it does not come through one of the views.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from drawdown.errors import TransformError
from drawdown.spark.java_classes import java_object, java_set
from drawdown.spark.sql_checks import refused_in_query, refused_unparsed
from drawdown.spark.sql_failures import as_refusal
from drawdown.spark.sql_functions import SqlRefusal
from drawdown.spark.sql_gate import executes, more_than_a_query
from drawdown.spec.sql_limits import SqlLimits

LEAVES = frozenset({"CTERelationRef", "LocalRelation", "OneRowRelation", "Range", "UnionLoopRef"})
"""The leaves of an analysed plan that read nothing: values, ranges, references to parts of the query."""


class NotConfinedError(Exception):
    """A text that is more than a query over its views.

    Attributes:
        kind: ``command``: it does more than read and compute; ``relation``: it reads something else.
        name: Spark's name for the plan, or the relation as it is written.
    """

    def __init__(self, kind: Literal["command", "relation"], name: str) -> None:
        super().__init__(f"{kind}: {name}")
        self.kind = kind
        self.name = name

    @property
    def last_part(self) -> str:
        """Return the name of the relation without its catalog and database."""
        return self.name.rpartition(".")[2].strip("`")


class UnlistedSqlError(Exception):
    """A text with a function, an option, a hint or a size that is on no list."""

    def __init__(self, refusal: SqlRefusal) -> None:
        super().__init__(refusal.what)
        self._refusal = refusal

    def error(self, subject: str, where: str) -> TransformError:
        """Return the error about what the text is of, such as ``the transform of sales``."""
        refusal = self._refusal
        return TransformError(refusal.id, f"{subject} {refusal.what}", where=where, do=refusal.do)


@as_refusal()
def confined_query(session: SparkSession, text: str, views: Collection[str], limits: SqlLimits) -> DataFrame:
    """Return the frame of a query.

    Args:
        session: a `query_session`, in which the views are registered.
        views: the names of the temporary views that the query may read.

    Raises:
        NotConfinedError: it is more than that; Spark has not analysed it, or has at least run nothing.
        UnlistedSqlError: it uses what is on no list; Spark has not analysed it.
        PySparkException: it is not valid SQL, or Spark refuses it.
    """
    if refusal := refused_unparsed(session, text):
        raise UnlistedSqlError(refusal)
    if name := more_than_a_query(session, text):
        raise NotConfinedError("command", name)
    if refusal := refused_in_query(session, text, limits):
        raise UnlistedSqlError(refusal)
    if relation := _named(session, text, views):
        raise NotConfinedError("relation", relation)
    frame = session.sql(text)
    if name := executes(frame):
        raise NotConfinedError("command", name)
    if relation := _read(frame, views):
        raise NotConfinedError("relation", relation)
    return frame


def _named(session: SparkSession, text: str, views: Collection[str]) -> str | None:
    """Return the first relation that the text names and that is neither a view nor made by the text."""
    gateway = session.sparkContext._gateway
    parsed = session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    found: str | None = java_object(gateway, "RelationGate").named(parsed, java_set(gateway, _keys(views)))
    return found


def _read(frame: DataFrame, views: Collection[str]) -> str | None:
    """Return the first relation that the analysed query reads and that came through none of the views."""
    gateway = frame.sparkSession.sparkContext._gateway
    analysed = frame._jdf.queryExecution().analyzed()
    of, leaves = java_set(gateway, _keys(views)), java_set(gateway, LEAVES)
    found: str | None = java_object(gateway, "RelationGate").read(analysed, of, leaves)
    return found


def _keys(views: Collection[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in views)
