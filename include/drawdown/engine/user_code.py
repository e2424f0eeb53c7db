"""Python files of a pipeline's folder: loaded from their path, and the line of theirs that raised."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

RAISED = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit)
"""What users' code may raise: sys.exit() ends one pipeline, not the process with all others of its group."""


def load_module(name: str, path: Path) -> ModuleType:
    """Run a file as a module that no import finds: two pipelines may both have a transform.py.

    What it defines is pickled by value for Spark's Python workers, which do not have the file.
    """
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line_in(cause: BaseException, file: Path) -> str:
    """``file:line`` of the deepest line of the file in the trace; the file alone when it is not there."""
    line, trace = None, cause.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}:{line}" if line is not None else str(file)
