"""Sinks: the engine's half of the one protocol, stage; publishing is the other half.

    check()            before anything is made: the target may be ours, or the run is refused
    bind()             before the first row: the target is there
    write(frame, id)   a batch's rows, durable, idempotent per batch id; -> the files written
    rows_of(files)     the staged rows again, for the audit

Adding a format means one class here and one line in `sink_for`.
"""

from __future__ import annotations

from drawdown.engine.sinks.delta import DeltaSink
from drawdown.engine.sinks.delta_upsert import DeltaUpsertSink
from drawdown.engine.sinks.files import NativeFileSink
from drawdown.engine.sinks.protocol import Sink
from drawdown.metastore import Metastore
from drawdown.spec import Pipeline, Project

__all__ = ["DeltaSink", "NativeFileSink", "Sink", "sink_for"]


def sink_for(project: Project, pipeline: Pipeline, metastore: Metastore) -> Sink:
    """The sink a pipeline's spec declares."""
    if pipeline.sink.format == "delta":
        kind = DeltaUpsertSink if pipeline.sink.mode == "update" else DeltaSink
        return kind.output(project, pipeline)
    return NativeFileSink(project, pipeline, metastore)
