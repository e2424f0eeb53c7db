"""Who runs, and how to reach the caller; the same for drains, watches, replays and rebuilds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Batch, Run, Verdict


@dataclass(frozen=True)
class RunContext:
    """Who runs, and how to reach the caller.

    Attributes:
        application: of which the run is a part, as the metastore knows it.
        origin: what is kept in the run record: dag_id, dag_run_id, try_number ..., or the command.
        stop: set from outside to stop before the next batch writes.
        on_batch: called after each batch is noted, before Spark commits it.
        on_progress: called with each entry of ``Run.progress``, about a second after its batch.
        on_verdict: called after each audit, with the rows that were published.
        on_notice: called with a sentence that a person should read.
        on_open: called once there is a run record, with what closes it with an error, from any thread and by
            the metastore alone.
        on_query: called once the query runs, with its job group.
        waiting: for the block the run waits for something that comes by itself: nothing is expected of it.
        given_up: asks why nobody waits for the run any longer; it then ends before its next durable step.
    """

    run_id: str
    holder: str
    application: str | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    on_batch: Callable[[Batch], None] = lambda batch: None
    on_progress: Callable[[dict[str, Any]], None] = lambda entry: None
    on_verdict: Callable[[Verdict, int], None] = lambda verdict, rows: None
    on_notice: Callable[[str], None] = lambda sentence: None
    on_open: Callable[[Callable[[DrawdownError], None]], None] = lambda close: None
    on_query: Callable[[str], None] = lambda group: None
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    given_up: Callable[[], DrawdownError | None] = lambda: None

    def record(self, pipeline: str, kind: str = "drain", **asked: Any) -> Run:
        """The record to open the run with; ``asked`` is kept in its origin too."""
        return Run(
            self.run_id,
            pipeline,
            kind,
            holder=self.holder,
            origin={**self.origin, **asked},
            application=self.application,
        )
