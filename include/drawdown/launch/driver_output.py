"""The last lines of a driver that spark-submit has started.

Its JVM passes the driver's output on from a thread that it does not wait for once the driver has ended
(org.apache.spark.deploy.PythonRunner): what is still in the pipe by then is lost, and that is the outcome
of the run. So the driver stays until the pipe is empty.
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
    """Wait until everything printed so far has been read, if somebody reads, for at most `seconds`."""
    sys.stdout.flush()
    sys.stderr.flush()
    deadline = time.monotonic() + seconds
    while any(_unread(descriptor) for descriptor in (1, 2)) and time.monotonic() < deadline:
        time.sleep(0.01)


def _unread(descriptor: int) -> int:
    """Bytes in the pipe behind a descriptor (FIONREAD, pipe(7)); 0 for anything that is no pipe."""
    try:
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return 0
        unread = array.array("i", [0])
        fcntl.ioctl(descriptor, termios.FIONREAD, unread)
    except OSError:
        return 0
    return unread[0]
