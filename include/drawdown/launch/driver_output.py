"""Keep the last lines of a driver that spark-submit started.

The JVM forwards the driver's output in a thread, and does not wait for it once the driver has ended
(org.apache.spark.deploy.PythonRunner). Output that is still in the pipe is then lost, and it holds the result
of the run. So the driver waits until the pipe is empty.
"""

from __future__ import annotations

import array
import fcntl
import os
import stat
import sys
import termios
import time


def wait_until_read(seconds: float = 5.0) -> None:
    """Wait until everything printed so far has been read, for at most `seconds`."""
    sys.stdout.flush()
    sys.stderr.flush()
    deadline = time.monotonic() + seconds
    while any(_unread(descriptor) for descriptor in (1, 2)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _unread(descriptor: int) -> int:
    """Return the bytes in the pipe of a descriptor (FIONREAD, pipe(7)); 0 for anything but a pipe."""
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return 0
        unread = array.array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, unread)
    except OSError:
        return 0
    return unread[0]
