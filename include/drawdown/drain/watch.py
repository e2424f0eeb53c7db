"""A watch: a run on a developer's machine that continues until it is asked to stop.

It takes the lease and uses the drains' checkpoint and steps; each batch is audited and published as soon as
Spark has committed it. When it ends, the next drain continues where it stopped.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery

from drawdown.checkpoint import CheckpointFiles
from drawdown.drain.attempt import Attempt
from drawdown.drain.drain import ASKED_TO_STOP, FINISHED, Drain, Opened, under_lease
from drawdown.drain.progress import RunProgress
from drawdown.drain.slice import not_passed
from drawdown.drain.uncounted_watch import UncountedWatch
from drawdown.metastore.operations.runs import WATCH
from drawdown.metastore.records import UNCOUNTED, Run
from drawdown.spec.scheduling.trigger import Trigger, is_uncounted

KIND = WATCH
_POLL_SECONDS = 0.5
_ENDING_SECONDS = 0.1


def watch(attempt: Attempt, trigger: Trigger) -> Run:
    """Run a pipeline until ``context.stop`` is set, a batch fails, or an audit does not pass.

    A continuous or real-time trigger, or asynchronous progress tracking, writes through Spark's own sink.

    Returns:
        The finished run record, state ``stopped``.

    Raises:
        as `drain`; after an AuditFailed no further batch was started.
    """
    origin = {}
    kind: type[Drain] = Watch
    if is_uncounted(attempt.pipeline, trigger):
        asked = str(trigger) if trigger.kind in ("continuous", "real-time") else "asynchronous progress"
        origin, kind = {UNCOUNTED: asked}, UncountedWatch
    record = attempt.context.record(attempt.pipeline.name, KIND, **origin)
    return under_lease(attempt, record, lambda heartbeat: kind(attempt, heartbeat, trigger))


@dataclass
class Watch(Drain):
    """A drain without an end; ignores the bounds in ``drain:``."""

    ending: threading.Event = field(default_factory=threading.Event)

    def _stop_reason(self, batches: int, seconds: float) -> str | None:
        if self.pipeline.finishing and batches:
            return FINISHED
        return ASKED_TO_STOP if self.ending.is_set() or self.context.stop.is_set() else None

    def _wait(self, opened: Opened, running: StreamingQuery, progress: RunProgress) -> str:
        files = opened.generation.files
        judged = files.last_commit_batch()
        while not running.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
            self._look(progress)
            if self.context.stop.is_set():
                break
            committed = files.last_commit_batch()
            if committed != judged:
                judged = committed
                verdict = self._judge(opened)
                if verdict.outcome in ("fail", "error"):
                    self._end_between_batches(files, running)
                    raise not_passed(self.pipeline, verdict)
                if self.tally.published:
                    self.context.on_published()
        self._end_between_batches(files, running)
        return ASKED_TO_STOP

    def _end_between_batches(self, files: CheckpointFiles, running: StreamingQuery) -> None:
        """Let the current batch finish; a batch that is only planned stops before it writes."""
        self.ending.set()
        while running.isActive and files.unfinished:
            running.awaitTermination(_ENDING_SECONDS)  # type: ignore[arg-type]
        running.stop()
