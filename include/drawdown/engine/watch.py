"""A watch: a run that goes on until it is asked to stop, on a developer's machine.

It takes the lease and goes on with the same checkpoint as the drains, batch by batch through the same
steps; each batch is audited and published as soon as Spark has committed it. When it ends, the next drain
goes on where it stopped.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from drawdown.engine.drain import ASKED_TO_STOP, Drain, under_lease
from drawdown.engine.progress import RunProgress
from drawdown.engine.run_context import RunContext
from drawdown.engine.slice import Auditor, not_passed
from drawdown.engine.uncounted_watch import UncountedWatch
from drawdown.metastore import Metastore
from drawdown.metastore.records import UNCOUNTED, Run
from drawdown.spec import Pipeline, Project
from drawdown.spec.trigger import Trigger, is_uncounted

KIND = "watch"
_POLL_SECONDS = 0.5
_ENDING_SECONDS = 0.1


def watch(
    root: SparkSession,
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    auditor: Auditor,
    context: RunContext,
    trigger: Trigger,
) -> Run:
    """Run a pipeline until ``context.stop`` is set, a batch fails, or an audit does not pass.

    A continuous or real-time trigger, or asynchronous progress tracking, is left to Spark's own sink.

    Returns:
        The finished run record, state ``stopped``.

    Raises:
        as `drain`; after an AuditFailed nothing was begun any more.
    """
    origin = {}
    kind: type[Drain] = Watch
    if is_uncounted(pipeline, trigger):
        asked = str(trigger) if trigger.kind in ("continuous", "real-time") else "asynchronous progress"
        origin, kind = {UNCOUNTED: asked}, UncountedWatch
    return under_lease(
        lambda keeper: kind(root, project, pipeline, metastore, auditor, context, keeper, trigger),
        context.record(pipeline.name, KIND, **origin),
        project,
        pipeline,
        metastore,
    )


@dataclass
class Watch(Drain):
    """A drain without an end; its bounds (``drain:``) are not asked."""

    ending: threading.Event = field(default_factory=threading.Event)

    def _stop_reason(self, batches: int) -> str | None:
        return ASKED_TO_STOP if self.ending.is_set() or self.context.stop.is_set() else None

    def _wait(self, running: StreamingQuery, progress: RunProgress) -> str:
        judged = self.files.last_commit_batch()
        while not running.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
            self._look(progress)
            if self.context.stop.is_set():
                break
            committed = self.files.last_commit_batch()
            if committed != judged:
                judged = committed
                verdict = self._judge()
                if verdict.outcome in ("fail", "error"):
                    self._end_between_batches(running)
                    raise not_passed(self.pipeline, verdict)
        self._end_between_batches(running)
        return ASKED_TO_STOP

    def _end_between_batches(self, running: StreamingQuery) -> None:
        """Let a batch under way come to its end; one that was only planned ends before it writes."""
        self.ending.set()
        while running.isActive and self.files.unfinished:
            running.awaitTermination(_ENDING_SECONDS)  # type: ignore[arg-type]
        running.stop()
