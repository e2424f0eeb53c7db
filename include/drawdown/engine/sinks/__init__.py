"""Sinks: the engine's half of the one protocol, stage; publishing is the other half.

    check()            before anything is made: the target may be ours, or the run is refused
    bind()             before the first row: the target is there
    write(frame, id)   a batch's rows, durable, idempotent per batch id; -> the files written
    rows_of(files)     the staged rows again, for the audit

Delta and the file formats do all of it, so do sinks whose rows wait apart from the target (staged.py); the
others are handed each batch at once (delivering.py). Adding a format means one class here and one line in
`sink_for`.
"""

from __future__ import annotations

from drawdown.engine.sinks.console import ConsoleSink
from drawdown.engine.sinks.delivering import DeliveringSink
from drawdown.engine.sinks.delta import DeltaSink
from drawdown.engine.sinks.delta_upsert import DeltaUpsertSink
from drawdown.engine.sinks.files import NativeFileSink
from drawdown.engine.sinks.function import ForeachBatchSink, ForeachSink
from drawdown.engine.sinks.kafka import KafkaSink
from drawdown.engine.sinks.kafka_exactly_once import ExactlyOnceKafkaSink
from drawdown.engine.sinks.memory import MemorySink
from drawdown.engine.sinks.protocol import SelfStagingSink, Sink, StagingSink
from drawdown.engine.sinks.token import BatchToken
from drawdown.metastore import Metastore
from drawdown.spec import Pipeline, Project

__all__ = [
    "BatchToken", "DeltaSink", "NativeFileSink", "SelfStagingSink", "Sink", "StagingSink", "sink_for",
]  # fmt: skip


_DELIVERED: dict[str, type[DeliveringSink]] = {
    "kafka": KafkaSink,
    "foreach_batch": ForeachBatchSink,
    "foreach": ForeachSink,
    "console": ConsoleSink,
    "memory": MemorySink,
}


def sink_for(project: Project, pipeline: Pipeline, metastore: Metastore) -> Sink:
    """The sink a pipeline's spec declares."""
    if pipeline.sink.format == "delta":
        update = pipeline.sink.mode == "update"
        return DeltaUpsertSink(project, pipeline) if update else DeltaSink.output(project, pipeline)
    if pipeline.sink.transactional:
        return ExactlyOnceKafkaSink(project, pipeline, metastore)
    if pipeline.sink.format == "postgres":
        # Here: psycopg is loaded for those who need it.
        from drawdown.engine.sinks.postgres import PostgresSink

        return PostgresSink(project, pipeline)
    if pipeline.sink.format in _DELIVERED:
        return _DELIVERED[pipeline.sink.format](project, pipeline)
    return NativeFileSink(project, pipeline, metastore)
