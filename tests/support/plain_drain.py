"""A pipeline whose checkpoint plain Spark writes, without Drawdown's engine, and the preflight of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from drawdown.checkpoint import CheckpointFiles
from drawdown.metastore.records import Batch, BatchStatus
from drawdown.plan.preflight import Preflight, preflight
from drawdown.spec import load_pipeline
from drawdown.storage import Storage
from drawdown.workspace import Workspace
from tests.support.sandbox import Sandbox

CHECKPOINT = "_drawdown/flights/checkpoint-1"


class Flights:
    """One pipeline that plain Spark drains, without Drawdown's engine, and the preflight of it.

    Attributes:
        status: as which the last batch of a drain is noted.
    """

    status: BatchStatus = "published"

    def __init__(self, sandbox: Sandbox, spec: str) -> None:
        self.sandbox = sandbox
        sandbox.pipeline(
            "flights",
            spec,
            transform_sql="select * from left",
            out_ddl="value string",
            left_ddl="value string",
        )
        self.metastore = sandbox.metastore()
        self.lease = self.metastore.acquire("flights", "test", "r1", timedelta(minutes=5))

    def look(self) -> Preflight:
        return preflight(
            Workspace(self.sandbox.project, self.metastore), load_pipeline(self.sandbox.project, "flights")
        )

    def drain(self, *frames: DataFrame, order: tuple[str, ...] = ("left",)) -> None:
        """Read all that is there, in one query with the checkpoint of generation 1."""
        first, *others = [frame.selectExpr("cast(value as string) as value") for frame in frames]
        for other in others:
            first = first.union(other)
        query = (
            first.writeStream.foreachBatch(lambda batch, _: batch.count())
            .option("checkpointLocation", str(self.sandbox.storage / CHECKPOINT))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        self.metastore.create_checkpoint(self.lease, 1, CHECKPOINT, {"source_order": list(order)})
        last = CheckpointFiles(Storage(str(self.sandbox.storage)), CHECKPOINT).last_commit_batch()
        if last is not None and self.metastore.batch("flights", 1, last) is None:
            batch = Batch("flights", 1, last, "r1", self.lease.epoch, status=self.status)
            self.metastore.note_batch(self.lease, batch, [], {})

    def drain_files(self, path: str = "in", **options: Any) -> None:
        reader = self.sandbox.spark.readStream.options(**options)  # type: ignore[union-attr]
        self.drain(reader.text(str(self.sandbox.storage / path)))
