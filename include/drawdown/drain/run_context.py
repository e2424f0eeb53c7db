"""Who runs, and callbacks to the caller; the same for drains, watches, replays and rebuilds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Batch, Run, Verdict

if TYPE_CHECKING:
    from drawdown.query.query import Query
    from drawdown.workspace import Generation


@dataclass(frozen=True)
class RunContext:
    """Who runs, and callbacks to the caller.

    Attributes:
        application: id in the metastore of the Spark application that the run is part of.
        origin: kept in the run record: dag_id, dag_run_id, try_number ..., or the command.
        stop: set from outside to stop before the next batch writes.
        on_batch: called after each batch is noted, before Spark commits it.
        on_progress: called with each entry of ``Run.progress``, about a second after its batch.
        on_verdict: called after each audit, with the rows that were published.
        on_notice: called with a sentence for the user.
        on_open: called once the run record exists, with a function that closes the record with an error; it
            works from any thread and uses only the metastore.
        on_planned: called once the query is analysed, before it starts.
        on_published: called when a run that continues has made rows visible, once or more often.
        on_query: called once the query runs, with its job group.
        waiting: pauses the stuck-run timer inside the block.
        given_up: returns the error if the run was cancelled, else None; the run then ends before its next
            durable step.
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
    on_planned: Callable[[Generation, Query], None] = lambda generation, query: None
    on_published: Callable[[], None] = lambda: None
    on_query: Callable[[str], None] = lambda group: None
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext
    given_up: Callable[[], DrawdownError | None] = lambda: None

    def record(self, pipeline: str, kind: str = "drain", **asked: Any) -> Run:
        """Return the record to open the run with; ``asked`` is added to its origin."""
        return Run(
            self.run_id,
            pipeline,
            kind,
            holder=self.holder,
            origin={**self.origin, **asked},
            application=self.application,
        )
