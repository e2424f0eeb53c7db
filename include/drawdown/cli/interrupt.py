"""Work that Ctrl-C stops cleanly before the next batch writes; a second Ctrl-C ends it at once.

The work runs in its own thread and the main thread only waits. So signals are handled at any time, even while
a call waits for the JVM. PySpark, which takes over SIGINT if a context is created in the main thread (it
cancels all jobs in the middle of a batch), leaves it alone. Python starts the JVM with SIGINT ignored
(pyspark/java_gateway.py), so the terminal's signal to the whole group does not end it.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOOK_EVERY = 0.1


def interruptibly(
    work: Callable[[], None],
    stop: threading.Event,
    report: Callable[[str], None],
    leave: Callable[[], None],
) -> int | None:
    """Do the work and return the signal that stopped it, if any; raises what the work raises.

    Args:
        stop: set at the first signal; the work checks it and ends.
        report: receives one sentence when a signal arrives.
        leave: called before the process ends at once, to restore the terminal.
    """
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001  raised again below, in the thread that waits
            failures.append(failure)

    received: list[int] = []

    def receive(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, receive) for number in _SIGNALS}
    thread = threading.Thread(target=guarded, name="work", daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_EVERY)
            if received and not stop.is_set():
                stop.set()
                report("stopping before the next batch writes; press again to stop at once")
            if len(received) > 1:
                report("stopped at once; the interrupted batch is repeated after the lease has expired")
                leave()
                os._exit(128 + received[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if failures:
        raise failures[0]
    return received[0] if received else None
