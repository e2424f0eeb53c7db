"""What every job that is submitted to Spark begins and ends with; jobs/*.py say only what they do."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from drawdown.clusters.driver_output import wait_until_read
from drawdown.errors import DrawdownError
from drawdown.leash import Leash
from drawdown.reporting import say


def run_job(work: Callable[[threading.Event], int]) -> NoReturn:
    """Do the work and end the process with its exit code; what it raises is one error on standard error.

    The process ends at once: Python would wait for threads of the user's code, which may never end.

    Args:
        work: is given the event that asks it to stop.
    """
    stop = Leash.from_environment().stop_requested
    try:
        code = work(stop)
    except DrawdownError as error:
        say(str(error), sys.stderr)
        code = error.exit_code
    finally:
        wait_until_read()
    os._exit(code)
