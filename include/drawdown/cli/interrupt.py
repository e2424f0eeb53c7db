"""Runs pipelines so that Ctrl-C stops them cleanly: before the next batch writes; a second one at once.

The work goes on in a thread of its own and the main thread only waits. So a signal is heard at any
moment, also while a call waits for the JVM, and PySpark, which takes SIGINT over when a context is made
in the main thread (it cancels all jobs in the middle of a batch), leaves it alone. Python starts the JVM
with SIGINT ignored (pyspark/java_gateway.py), so the terminal's signal to the whole group does not end it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING

from drawdown.application import Application, Report

if TYPE_CHECKING:
    from drawdown.spec import Pipeline

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_EVERY = 0.1


def drain_interruptibly(
    application: Application, pipelines: Sequence[Pipeline], told: Callable[[str], None]
) -> tuple[list[Report], int | None]:
    """Drain until done or stopped; the reports, and the signal that stopped it.

    Args:
        told: hears one sentence when a signal has come.
    """
    reports: list[Report] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            reports.extend(application.drain_all(pipelines))
        except BaseException as failure:  # noqa: BLE001  raised again below, in the thread that waits
            failures.append(failure)

    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, receive) for number in _SIGNALS}
    thread = threading.Thread(target=work, name="drain", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_EVERY)
            if received and not application.stop.is_set():
                application.stop.set()
                told("stopping before the next batch writes; once more to end at once")
            if len(received) > 1:
                told("ended at once; the next run replays the batch under way once the lease has expired")
                os._exit(128 + received[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures:
        raise failures[0]
    return reports, received[0] if received else None
