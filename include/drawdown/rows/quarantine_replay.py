"""Adds quarantined rows to one batch, after their source's boundary (decision 0011).

They are not a source of the checkpoint: they enter by a union with a streaming leaf that Spark does not count
as a source (MicroBatchExecution collects only StreamingRelation, Spark 4.2). A filter on the batch's time
admits its rows only into the batch planned at that time. So every checkpoint accepts them, and every attempt
at that batch has the same rows.
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
from drawdown.rows.row_fates import frame_of
from drawdown.spark.gateway import jvm_of
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
    """Return a source's rows and, in their batch, the rows to be replayed; same columns."""
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
    """Plan the batch for these rows before the query starts, unless Spark has planned it."""
    for each in replays:
        planned = generation.files.last_offset_batch()
        if planned is None or planned < each.batch_id:
            with durable("replay.plan"):
                plan_batch(generation.storage, generation.path, each.batch_id, each.planned_ms)


def is_replayed(node: Any) -> bool:
    """Whether a streaming leaf of an analysed Java plan holds quarantined rows rather than a source."""
    return str(node.getClass().getSimpleName()) == "LogicalRelation"


def _as_stream(session: SparkSession, frame: DataFrame) -> DataFrame:
    jvm = jvm_of(session)
    relation = frame._jdf.queryExecution().analyzed()
    stream = relation.copy(
        relation.relation(), relation.output(), relation.catalogTable(), True, jvm.scala.Option.empty()
    )
    return frame_of(session, stream)
