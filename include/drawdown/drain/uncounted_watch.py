"""A watch with Spark's own sink: continuous, real-time, or with asynchronous progress tracking.

None of them can go through foreachBatch. So rows are not counted at the source boundary, nothing is
audited, and a row may be written again after a stop. It uses the same checkpoint as the drains.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from drawdown.checkpoint import CheckpointFiles
from drawdown.drain.drain import ASKED_TO_STOP, Drain, Opened
from drawdown.drain.progress import RunProgress
from drawdown.errors import DrawdownError, RefusedError
from drawdown.query.query import plain_output
from drawdown.sinks.kafka.spark_record_columns import refusing_reserved_topics
from drawdown.spark.session import option_text
from drawdown.spec.connections.broker_options import spark_options

_POLL_SECONDS = 0.5
# The default of 100 ms is shorter than a slow machine's first fetch, and the fetch starts again each time.
_POLL_CONF = "spark.sql.streaming.continuous.executorPollIntervalMs", "2000"


@dataclass
class UncountedWatch(Drain):
    """A run without BatchStep; see drawdown.drain.uncounted for how the next run continues."""

    def _open(self) -> Opened:
        found = self.workspace.metastore.active_checkpoint(self.pipeline.name)
        if self.pipeline.sink.format == "memory" and found is not None:
            raise RefusedError(
                "trigger.memory",
                "Spark's memory sink cannot continue from a checkpoint",
                where=f"pipeline {self.pipeline.name}",
                do="watch it with the default trigger, or write to console or kafka",
            )
        return super()._open()

    def _drain(self, opened: Opened) -> str:
        number = opened.generation.number
        self.workspace.metastore.update_run(self.context.run_id, generation=number)
        self.context.on_notice(
            "Spark's own sink writes: rows"
            " are not counted, checked or"
            " audited, and some may be"
            " written twice after a stop"
            + (", and it needs a core per partition" if self.trigger.kind == "continuous" else "")
        )
        files = opened.generation.files
        before, shown = files.last_commit_batch(), False
        running = self._start(opened)
        progress = self.tally.progress = RunProgress(running, opened.query)
        try:
            while not running.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
                self._look(progress)
                # Each look lists the checkpoint, so it ends with the first batch.
                if not shown and _last_commit(files, before) != before:
                    shown = True
                    self.context.on_published()
                if self.context.stop.is_set():
                    break
        finally:
            self._look(progress)
            running.stop()
        self.workspace.metastore.set_query_id(self.heartbeat.lease, number, str(running.id))
        return ASKED_TO_STOP

    def _start(self, opened: Opened) -> StreamingQuery:
        query = opened.query
        query.session.conf.set(*_POLL_CONF)
        output = plain_output(query.session, self.workspace.project, self.pipeline)
        if self.pipeline.sink.format == "kafka":
            output = refusing_reserved_topics(output)
        # Without state the two are the same, and the real-time trigger knows only update.
        mode = "update" if self.trigger.kind == "real-time" else self.pipeline.sink.mode
        writer = (
            self._to_sink(output.writeStream)
            .outputMode(mode)
            .queryName(self.pipeline.name)
            .option("checkpointLocation", self.workspace.storage.path(opened.generation.path))
        )
        if self.trigger.arguments:
            writer = writer.trigger(**self.trigger.arguments)  # type: ignore[arg-type]
        running = writer.start()
        if self.pipeline.sink.format == "memory":
            # The same view as in a counted run (sinks/test/stage_memory.py).
            query.session.table(self.pipeline.name).createOrReplaceGlobalTempView(self.pipeline.name)
        return running

    def _to_sink(self, writer: DataStreamWriter) -> DataStreamWriter:
        sink = self.pipeline.sink
        writer = writer.format(sink.format).options(**{k: option_text(v) for k, v in sink.options.items()})
        if sink.format == "kafka":
            writer = writer.options(**spark_options(self.workspace.project.brokers[sink.broker]))
            if sink.topic is not None:
                writer = writer.option("topic", sink.topic)
        return writer


def _last_commit(files: CheckpointFiles, unknown: int | None) -> int | None:
    """Return the last committed batch, or `unknown`: what only others want to know ends no watch."""
    try:
        return files.last_commit_batch()
    except DrawdownError:
        return unknown
