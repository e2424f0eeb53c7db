"""Delta in update mode: rows are staged apart from the table, and a publish merges them into it by key."""

from __future__ import annotations

from pyspark.sql.types import StructType

from drawdown.metastore.records import Checkpoint
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.spark_staged import StagedFilesSink
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


class DeltaUpsertSink(StagedFilesSink):
    """A Delta output whose rows are identified by keys."""

    def __init__(self, workspace: Workspace, pipeline: Pipeline) -> None:
        super().__init__(workspace, pipeline)
        self._table = DeltaSink.output(workspace, pipeline)

    def check_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str | None:
        return self._table.check(schema, checkpoint)

    def bind_target(self, schema: StructType, checkpoint: Checkpoint | None) -> str:
        return self._table.bind(schema, checkpoint)

    def holds(self, generation: int, batch_id: int) -> bool:
        return self._table.holds(generation, batch_id)
