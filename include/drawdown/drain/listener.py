"""A pipeline's own StreamingQueryListener: listener.py in its folder receives the events of its query only.

Spark calls all listeners of an application in one thread, after the commit. Here each listener has its own
thread: it can delay neither a batch nor other listeners, and its errors cannot fail a run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from drawdown.errors import TransformError
from drawdown.spark.user_code import RAISED, load_module, said
from drawdown.spec import Pipeline

_CLASS = "Listener"
_LAST_WORD_SECONDS = 10.0


@contextmanager
def listening(
    session: SparkSession, listener: StreamingQueryListener | None, report: Callable[[str], None]
) -> Iterator[None]:
    """Register a listener for the queries of this session, up to their last event.

    Args:
        session: the query's own session; listeners of other sessions do not receive its events.
        report: receives one sentence when the listener raises for the first time.
    """
    if listener is None:
        yield
        return
    guarded = _Guarded(listener, report)
    session.streams.addListener(guarded)
    try:
        yield
    finally:
        # Events can still arrive after the query has ended.
        if guarded.started and not guarded.ended.wait(_LAST_WORD_SECONDS):
            report(
                f"the listener is busy {_LAST_WORD_SECONDS:.0f} s after its query ended; the run"
                " continues without it"
            )
        session.streams.removeListener(guarded)
        guarded.events.put(None)


class _Guarded(StreamingQueryListener):
    """Passes every event on, in order; reports the first error and lets none reach Spark."""

    def __init__(self, listener: StreamingQueryListener, report: Callable[[str], None]) -> None:
        self._listener = listener
        self._report = report
        self._failed = False
        self.started = False
        self.ended = threading.Event()
        self.events: SimpleQueue[tuple[str, Any] | None] = SimpleQueue()
        threading.Thread(target=self._listen, name="listener", daemon=True).start()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.started = True
        self.events.put(("onQueryStarted", event))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.events.put(("onQueryProgress", event))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        self.events.put(("onQueryIdle", event))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.events.put(("onQueryTerminated", event))

    def _listen(self) -> None:
        while (heard := self.events.get()) is not None:
            self._pass_on(*heard)
            if heard[0] == "onQueryTerminated":
                self.ended.set()

    def _pass_on(self, method: str, event: Any) -> None:
        try:
            getattr(self._listener, method)(event)
        except RAISED as cause:
            if not self._failed:
                self._failed = True
                self._report(
                    f"the listener raised {type(cause).__name__} in {method}: {cause}; the run continues"
                )


def listener_of(pipeline: Pipeline) -> StreamingQueryListener | None:
    """Return an instance of ``Listener`` from listener.py; None when the folder has no listener.py.

    Raises:
        TransformError: ``listener.no-class`` or ``listener.raised``.
    """
    path = pipeline.listener
    if path is None:
        return None
    try:
        made = getattr(load_module(f"drawdown_listener_{pipeline.name}", path), _CLASS, None)
        listener = made() if isinstance(made, type) else None
    except RAISED as cause:
        raise TransformError(
            "listener.raised",
            f"the listener of {pipeline.name} raised {said(cause)}",
            where=str(path),
            do="fix it, or remove the file; nothing was read or written",
        ) from None
    if not isinstance(listener, StreamingQueryListener):
        raise TransformError(
            "listener.no-class",
            f"listener.py of {pipeline.name} has no class {_CLASS} that is a StreamingQueryListener",
            where=str(path),
            do=f"define `class {_CLASS}(StreamingQueryListener)`, whose constructor takes no arguments, or"
            " remove the file",
        )
    return listener
