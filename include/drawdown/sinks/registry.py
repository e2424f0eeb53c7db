"""Sinks: the engine's half of the one protocol, stage; publishing is the other half.

    check()            before anything is made: the target may be ours, or the run is refused
    bind()             before the first row: the target is there
    write(frame, id)   a batch's rows, durable, idempotent per batch id; -> the files written
    rows_of(files)     the staged rows again, for the audit

Delta and the file formats do all of it, so do sinks whose rows wait apart from the target (spark_staged.py);
the others are handed each batch at once (spark_delivering.py). Adding a format means a folder with its
stage.py, and one line in `sink_for`.
"""

from __future__ import annotations

from drawdown.sinks.code.stage import ForeachBatchSink, ForeachSink
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.delta.stage_upsert import DeltaUpsertSink
from drawdown.sinks.files.stage import NativeFileSink
from drawdown.sinks.kafka.stage import ExactlyOnceKafkaSink
from drawdown.sinks.kafka.stage_at_least_once import KafkaSink
from drawdown.sinks.spark_delivering import DeliveringSink
from drawdown.sinks.stage import SelfStagingSink, SinkStage, StagingSink
from drawdown.sinks.test.stage_console import ConsoleSink
from drawdown.sinks.test.stage_memory import MemorySink
from drawdown.sinks.token import BatchToken
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace

__all__ = [
    "BatchToken", "DeltaSink", "NativeFileSink", "SelfStagingSink", "SinkStage", "StagingSink", "sink_for",
]  # fmt: skip


_DELIVERED: dict[str, type[DeliveringSink]] = {
    "kafka": KafkaSink,
    "foreach_batch": ForeachBatchSink,
    "foreach": ForeachSink,
    "console": ConsoleSink,
    "memory": MemorySink,
}


def sink_for(
    workspace: Workspace,
    pipeline: Pipeline,
) -> SinkStage:
    """The sink a pipeline's spec declares."""
    if pipeline.sink.format == "delta":
        update = pipeline.sink.mode == "update"
        return (
            DeltaUpsertSink(workspace.project, pipeline)
            if update
            else DeltaSink.output(workspace.project, pipeline)
        )
    if pipeline.sink.transactional:
        return ExactlyOnceKafkaSink(workspace, pipeline)
    if pipeline.sink.format == "postgres":
        # Here: psycopg is loaded for those who need it.
        from drawdown.sinks.postgres.stage import PostgresSink

        return PostgresSink(workspace.project, pipeline)
    if pipeline.sink.format in _DELIVERED:
        return _DELIVERED[pipeline.sink.format](workspace.project, pipeline)
    return NativeFileSink(workspace, pipeline)
