"""Rows of the quarantine that go into one batch, behind their source's boundary (decision 0011).

They are no source of the checkpoint: a streaming leaf that Spark does not count among the sources
(MicroBatchExecution collects StreamingRelation only, Spark 4.2) is unioned in, and a filter on the batch's
time lets its rows into the one batch that was planned at that time. So any checkpoint takes them, and every
attempt at that batch has the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from drawdown.checkpoint import plan_batch
from drawdown.fault_points import durable
from drawdown.metastore.records import QuarantineDecision
from drawdown.rows.boundary import frame_of
from drawdown.storage import Storage
from drawdown.workspace import Generation

TAKEN = "_dd_taken"
"""BOOLEAN column of the judged rows: whether the row is fed."""


def add_replayed_rows(
    session: SparkSession,
    storage: Storage,
    name: str,
    frame: DataFrame,
    decisions: Sequence[QuarantineDecision],
) -> DataFrame:
    """The rows of a source, and in their batch those that were decided to be replayed; same columns."""
    for decision in decisions:
        if name not in decision.feeds:
            continue
        schema = StructType([*frame.schema.fields, StructField(TAKEN, BooleanType())])
        judged = session.read.schema(schema).parquet(storage.path(decision.feeds[name]["path"]))
        its_batch = F.current_timestamp() == F.timestamp_millis(F.lit(decision.planned_ms))
        taken = _as_stream(session, judged).where(F.col(TAKEN) & its_batch).drop(TAKEN)
        frame = frame.unionByName(taken)
    return frame


def plan_their_batch(generation: Generation, replays: Sequence[QuarantineDecision]) -> None:
    """Before a query starts: plan the batch that these rows go into, where Spark has not planned it."""
    for each in replays:
        planned = generation.files.last_offset_batch()
        if planned is None or planned < each.batch_id:
            with durable("replay.plan"):
                plan_batch(generation.storage, generation.path, each.batch_id, each.planned_ms)


def is_replayed(node: Any) -> bool:
    """Whether a streaming leaf of an analysed plan, in Java, is no source but rows of the quarantine."""
    return str(node.getClass().getSimpleName()) == "LogicalRelation"


def _as_stream(session: SparkSession, frame: DataFrame) -> DataFrame:
    jvm = session._jvm
    assert jvm is not None
    relation = frame._jdf.queryExecution().analyzed()
    stream = relation.copy(
        relation.relation(), relation.output(), relation.catalogTable(), True, jvm.scala.Option.empty()
    )
    return frame_of(session, stream)
