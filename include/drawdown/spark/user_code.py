"""Load Python files of a pipeline's folder, and find their line that raised an exception."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import NoReturn, TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

_Spark = TypeVar("_Spark", SparkSession, SparkContext)

RAISED = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
"""What users' code may raise: sys.exit() ends one pipeline, not the process with all of its group."""

# Py4J's own first line, and the lines of a trace.
_JAVA = re.compile(r"An error occurred while calling |\s+at ")
_exit = os._exit
_files: set[str] = set()
"""The files that were loaded."""


def load_module(name: str, path: Path) -> ModuleType:
    """Run a file as a module that cannot be imported by name: two pipelines may both have a transform.py.

    Its definitions are pickled by value for Spark's Python workers, which do not have the file. They have the
    modules of the project that it imports in an archive (launch/code_archives.py).
    """
    _let_import_modules_beside(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    _files.add(str(path))
    _refuse_ends()
    spec.loader.exec_module(module)
    return module


def _let_import_modules_beside(path: Path) -> None:
    """Put the folder `include` on the path, behind everything that is installed."""
    for folder in path.parents:
        if folder.name == "pipelines":
            include = str(folder.parent)
            if include not in sys.path:
                sys.path.append(include)
            return


@cache
def _refuse_ends() -> None:
    """Make calls of users' code that would end the whole process errors of its pipeline."""

    process = os.getpid()

    def exit_at_once(status: int) -> NoReturn:
        # A process that users' code has forked, for example by multiprocessing, may end.
        if os.getpid() == process and _is_users():
            raise SystemExit(status)
        _exit(status)

    os._exit = exit_at_once
    SparkSession.stop = _not_by_users(SparkSession.stop)  # type: ignore[method-assign, assignment]
    SparkContext.stop = _not_by_users(SparkContext.stop)  # type: ignore[method-assign, assignment]


def _not_by_users(stop: Callable[[_Spark], None]) -> Callable[[_Spark], None]:
    @wraps(stop)
    def asked(of: _Spark) -> None:
        if _is_users():
            raise RuntimeError("all pipelines of the application share Spark: remove the code that stops it")
        stop(of)

    return asked


def _is_users() -> bool:
    """Whether code from `load_module` is among the callers."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename in _files:
            return True
    return False


def said(cause: BaseException) -> str:
    """Return ``Type: message`` on one line, without the trace that a Java exception includes."""
    lines = [line for line in str(cause).splitlines() if line and not _JAVA.match(line)]
    return f"{type(cause).__name__}: {lines[0].removeprefix(': ') if lines else ''}"


def line_in(cause: BaseException, file: Path) -> str:
    """Return ``file:line`` of the deepest line of the file in the trace; the file alone when it has none."""
    line, trace = None, cause.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}:{line}" if line is not None else str(file)
