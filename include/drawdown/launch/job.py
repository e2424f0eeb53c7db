"""How every job that is submitted to Spark begins and ends; jobs/*.py only contain their own work."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import NoReturn

from drawdown.application.log_lines import error_lines, say
from drawdown.errors import DrawdownError
from drawdown.launch.answer import note_answer
from drawdown.launch.driver_output import wait_until_read
from drawdown.stop_pipe import StopPipe
from drawdown.versions import check_versions


def run_job(work: Callable[[threading.Event], int]) -> NoReturn:
    """Do the work and end the process with its exit code; print an exception as one error on standard error.

    The process ends at once: Python would wait for threads of the user's code, which may never end.

    Args:
        work: gets the event that asks it to stop.
    """
    stop = StopPipe.from_environment().stop_requested
    try:
        check_versions()
        code = work(stop)
    except DrawdownError as error:
        say(error_lines(error), sys.stderr)
        code = error.exit_code
    finally:
        wait_until_read()
    note_answer()
    os._exit(code)
