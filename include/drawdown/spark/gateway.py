"""The way from Python to Spark's classes in the JVM, and whether it is cut off."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import SparkSession


def jvm_of(session: SparkSession) -> Any:
    """The classes of a session's JVM; a running session of Spark Classic always has one."""
    return session._jvm


def is_cut_off(cause: BaseException) -> bool:
    """Whether an exception came from a connection to the JVM that was refused or has broken.

    Py4J raises its own error for some of them, and the socket's for others (ConnectionRefusedError).
    """
    return any(
        isinstance(each, Py4JNetworkError) or (isinstance(each, OSError) and _is_of_py4j(each))
        for each in _with_causes(cause)
    )


def is_stopping(session: SparkSession) -> bool:
    """Whether the JVM of a session is gone, or ends: it first stops Spark, which fails what is under way."""
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())
    except (AttributeError, Py4JError, OSError):
        return True


def _with_causes(cause: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _is_of_py4j(cause: BaseException) -> bool:
    """Whether Py4J itself raised it: users' code that Spark calls back runs below Py4J's frames, too."""
    files = [frame.filename for frame in traceback.extract_tb(cause.__traceback__)]
    raised_in = [file for file in files if not file.endswith("/socket.py")][-1:]
    return any("/py4j/" in file for file in raised_in)
