"""A job's output in the log of its task: each line at its own level, errors kept for the end of the task."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable

from drawdown.application.log_lines import ERROR, begins_error

_OF_SPARK = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (?P<level>WARN|ERROR|FATAL) ")
"""The format of spark/log4j2.properties."""

_LEVELS = {"WARN": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}

_LAST_LINES = 10

_NOT_SHOWN = (
    # Every JVM that Spark starts prints this: Spark itself requests that module.
    "WARNING: Using incubator modules: jdk.incubator.vector",
)


class JobOutput:
    """Logs the lines of a job, except its errors.

    Args:
        log: takes a level of `logging` and a line.

    Attributes:
        errors: each as it was printed, from its id to the remedy.
    """

    def __init__(self, log: Callable[[int, str], None]) -> None:
        self.errors: list[str] = []
        self._log = log
        self._error: list[str] = []
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def say(self, line: str) -> None:
        """Take the next line."""
        if self._error and line.startswith(" "):
            self._error.append(line)
            return
        self.end()
        if begins_error(line):
            self._error = [line.removeprefix(ERROR)]
        elif line not in _NOT_SHOWN:
            self._last.append(line)
            found = _OF_SPARK.match(line)
            self._log(_LEVELS[found["level"]] if found else logging.INFO, line)

    def end(self) -> None:
        """Finish: no more lines follow."""
        if self._error:
            self.errors.append("\n".join(self._error))
            self._error = []

    @property
    def last_lines(self) -> str:
        """Return the last lines, for a job that ended without an error of its own."""
        return "\n".join(self._last)
