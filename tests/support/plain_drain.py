"""A pipeline whose checkpoint plain Spark writes, without Drawdown's engine, and the preflight of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame

from drawdown.plan.preflight import Preflight, preflight
from drawdown.spec import load_pipeline
from tests.support.workspace import Workspace

CHECKPOINT = "_drawdown/flights/checkpoint-1"


class Flights:
    """One pipeline that plain Spark drains, without Drawdown's engine, and the preflight of it."""

    def __init__(self, workspace: Workspace, spec: str) -> None:
        self.workspace = workspace
        workspace.pipeline(
            "flights",
            spec,
            transform_sql="select * from left",
            out_ddl="value string",
            left_ddl="value string",
        )
        self.metastore = workspace.metastore()
        self.lease = self.metastore.acquire("flights", "test", "r1", timedelta(minutes=5))

    def look(self) -> Preflight:
        return preflight(
            self.workspace.project, load_pipeline(self.workspace.project, "flights"), self.metastore
        )

    def drain(self, *frames: DataFrame, order: tuple[str, ...] = ("left",)) -> None:
        """Read all that is there, in one query with the checkpoint of generation 1."""
        first, *others = [frame.selectExpr("cast(value as string) as value") for frame in frames]
        for other in others:
            first = first.union(other)
        query = (
            first.writeStream.foreachBatch(lambda batch, _: batch.count())
            .option("checkpointLocation", str(self.workspace.storage / CHECKPOINT))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        self.metastore.create_checkpoint(self.lease, 1, CHECKPOINT, {"source_order": list(order)})

    def drain_files(self, path: str = "in", **options: Any) -> None:
        reader = self.workspace.spark.readStream.options(**options)  # type: ignore[union-attr]
        self.drain(reader.text(str(self.workspace.storage / path)))
