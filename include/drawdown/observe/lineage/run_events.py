"""What applications and commands call: a run has begun, its query is known, it publishes, it has ended.

Nothing here raises, and no run waits: a thread works everything out and another one sends it. When an
application ends, after all that it published is visible, a server that does not answer gets one more second;
what it has not taken by then is sent with the next run.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from drawdown.metastore.records import Run
from drawdown.observe.lineage.column_lineage import OutputColumns, columns, keep_columns
from drawdown.observe.lineage.settings import destination
from drawdown.spec import Pipeline
from drawdown.workspace import Generation, Workspace

if TYPE_CHECKING:
    from drawdown.observe.lineage.events import EventMaker
    from drawdown.observe.lineage.sender import Sender
    from drawdown.query.query import Query

log = logging.getLogger(__name__)

_SERVER_SECONDS = 1.0
"""How long the end of an application waits for the server."""
_LOCAL_SECONDS = 3.0
"""How long it waits for the events to be written to the spool; usually some milliseconds."""
_CRASHED_LOOKED_AT = 20


@dataclass
class RunLineage:
    """The lineage of the runs of one process. Complete when made; costs nothing until a run begins."""

    workspace: Workspace
    parent: Mapping[str, str] = field(default_factory=dict)
    _tasks: queue.SimpleQueue[Callable[[], None]] = field(default_factory=queue.SimpleQueue)
    _worker: threading.Thread | None = None
    _told: set[str] = field(default_factory=set)
    _publishing: set[str] = field(default_factory=set)
    _versions: dict[str, Generation] = field(default_factory=dict)
    _known: dict[str, OutputColumns] = field(default_factory=dict)
    _sender: Sender | None = None
    _maker: EventMaker | None = None
    _looked: bool = False

    def opened(self, pipeline: Pipeline, run_id: str) -> None:
        """The record of a run is open."""
        self._later(partial(self._say_started, pipeline, run_id))

    def planned(self, run_id: str, generation: Generation, query: Query) -> None:
        """The query of a run was analysed; its columns are kept beside the checkpoint."""
        self._versions[run_id] = generation
        self._later(partial(self._find_columns, run_id, generation, query))

    def published(self, pipeline: Pipeline, run_id: str) -> None:
        """A run that continues has made rows visible; only the first time is told."""
        if run_id not in self._publishing:
            self._publishing.add(run_id)
            self._later(partial(self._say_running, pipeline, run_id))

    def ended(self, pipeline: Pipeline, run_id: str) -> None:
        """A run has ended, in whatever way, and its lease is released."""
        # The thread of a run that was given up may return after all.
        if run_id not in self._told:
            self._told.add(run_id)
            self._later(partial(self._say_ended, pipeline, run_id))

    def close(self) -> None:
        """The application ends: wait for the events, but not for long. It may begin again."""
        if (worker := self._worker) is None:
            return
        self._worker = None
        self._tasks.put(_END)
        worker.join(_LOCAL_SECONDS)
        if (sender := self._sender) is not None:
            _harmlessly(partial(sender.close, _SERVER_SECONDS))
        self._sender, self._looked = None, False

    # In the worker's thread

    def _say_started(self, pipeline: Pipeline, run_id: str) -> None:
        if (ready := self._ready()) is not None:
            maker, sender = ready
            if (run := self._run(run_id)) is not None:
                sender.add(maker.started(run, pipeline))

    def _find_columns(self, run_id: str, generation: Generation, query: Query) -> None:
        from drawdown.observe.lineage.spark_column_lineage import output_columns

        self._known[run_id] = found = output_columns(query)
        keep_columns(generation, found)

    def _say_running(self, pipeline: Pipeline, run_id: str) -> None:
        if (ready := self._ready()) is not None:
            maker, sender = ready
            version = self._versions.get(run_id)
            if (run := self._run(run_id)) is not None:
                used = version.pipeline if version is not None else pipeline
                sender.add(maker.running(run, used, self._known.get(run_id)))

    def _say_ended(self, pipeline: Pipeline, run_id: str) -> None:
        version = self._versions.pop(run_id, None)
        known = self._known.pop(run_id, None)
        ready = self._ready()
        run = self._run(run_id) if ready is not None else None
        if ready is None or run is None or run.ended_at is None:
            return
        from drawdown.observe.lineage.facts import facts_of

        maker, sender = ready
        pipeline = version.pipeline if version is not None else pipeline
        for crashed in self._crashed_meanwhile(run):
            sender.add(maker.ended(facts_of(self.workspace, pipeline, crashed)))
        known = known or self._kept(pipeline, run)
        sender.add(maker.ended(facts_of(self.workspace, pipeline, run, known)))

    def _run(self, run_id: str) -> Run | None:
        run = self.workspace.metastore.run(run_id)
        return run and replace(run, origin={**run.origin, **self.parent})

    def _kept(self, pipeline: Pipeline, run: Run) -> OutputColumns | None:
        """Return the columns that an earlier run found: a decision has no query of its own."""
        generation = Generation.of(self.workspace, pipeline)
        return columns(generation) if run.generation == generation.number else None

    def _crashed_meanwhile(self, run: Run) -> list[Run]:
        """Return the runs that this one found dead: their events have a start and no end."""
        found = self.workspace.metastore.runs(run.pipeline, limit=_CRASHED_LOOKED_AT)
        since = run.started_at
        return [
            each
            for each in found
            if each.state == "crashed" and each.ended_at is not None and since is not None
            if each.ended_at >= since and each.run_id != run.run_id
        ]

    def _ready(self) -> tuple[EventMaker, Sender] | None:
        """Return what makes and sends events; None when no destination is configured, or it is unusable."""
        if not self._looked:
            self._looked = True
            found = destination(self.workspace.project, os.environ)
            if found is not None:
                # The library is imported by those who send events only.
                from drawdown.observe.lineage.events import EventMaker
                from drawdown.observe.lineage.sender import Sender

                self._maker = EventMaker(self.workspace.project, found.namespace, os.environ)
                self._sender = Sender(found)
        if self._maker is None or self._sender is None:
            return None
        return self._maker, self._sender

    # Threads

    def _later(self, task: Callable[[], Any]) -> None:
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="lineage events", daemon=True)
            self._worker.start()
        self._tasks.put(task)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not _END:
            _harmlessly(task)


def _END() -> None:
    """End the worker."""


def _harmlessly(task: Callable[[], Any]) -> None:
    """Do the task; whatever goes wrong is one line in the log. Its text may name what nobody should read."""
    try:
        task()
    except ModuleNotFoundError as error:
        log.warning("lineage: %s is not installed: pip install 'drawdown[lineage]'", error.name)
    except Exception as error:
        log.warning("lineage: not recorded (%s)", type(error).__name__)
        log.debug("lineage failed with", exc_info=True)


@contextmanager
def told_at_its_end(
    workspace: Workspace, pipeline: Pipeline, run_id: str, parent: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Send the events of the block's run, which needs no Spark: a release, the swap of a rebuild.

    Args:
        parent: the run of Airflow that it belongs to, see parent.py.
    """
    try:
        yield
    finally:
        lineage = RunLineage(workspace, parent or {})
        lineage.opened(pipeline, run_id)
        lineage.ended(pipeline, run_id)
        lineage.close()
