"""The bench on which a user's pytest runs cases: one Spark for all of them, a project of its own for each."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from drawdown.spec import load_pipeline, load_pipelines, load_project
from drawdown.testing.cases.case import Case, case_names, load_cases
from drawdown.testing.cases.rows import Difference
from drawdown.testing.cases.running import Result, machinery, run_case

_SHOWN = 10
"""Rows of a difference that are in the failure's text."""


def cases_of(project: str | os.PathLike[str] = ".", *pipelines: str) -> list[Case]:
    """The cases of these pipelines, of all that have any when none is named. Starts nothing.

    Raises:
        SpecError: a folder is wrong, or a pipeline that is named has no case.
    """
    known = load_project(Path(project))
    if pipelines:
        chosen = [load_pipeline(known, name) for name in pipelines]
    else:
        chosen = [each for each in load_pipelines(known) if case_names(each)]
    return [case for each in chosen for case in load_cases(each)]


class Bench:
    """Runs cases in one Spark session, with a broker and a database server where one of them needs it.

    Used in a `with` block; what it has started is gone behind it. Nothing of the project's storage or
    metastore is touched.
    """

    def __init__(self, cases: Sequence[Case], project: str | os.PathLike[str] = ".") -> None:
        self._cases, self._project = cases, load_project(Path(project))
        self._numbers = itertools.count()
        self._stack = ExitStack()

    def __enter__(self) -> Bench:
        """Start Spark.

        Raises:
            MachineError: jars or Java are missing, or a server that a case needs did not start.
        """
        self._session, self._own_project = self._stack.enter_context(machinery(self._project, self._cases))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, case: Case) -> Result:
        """Bring each wave, drain it and compare the tables.

        Raises:
            AssertionError: rows are missing or unexpected; the text shows them.
            DrawdownError: whatever ended a drain.
        """
        own = self._own_project(case, f"case-{next(self._numbers)}")
        result = run_case(self._session, own, case, threading.Event())
        if result.error is not None:
            raise result.error
        assert result.passed, "\n".join(_lines(result.waves, found) for found in result.differences)
        return result


def _lines(wave: int, found: Difference) -> str:
    rows = [f"  - missing:    {row}" for row in found.missing[:_SHOWN]]
    rows += [f"  + unexpected: {row}" for row in found.unexpected[:_SHOWN]]
    left_out = len(found.missing) + len(found.unexpected) - len(rows)
    more = [f"  and {left_out} more"] if left_out else []
    return "\n".join(
        [f"after wave {wave} the {found.table} differs ({', '.join(found.columns)}):", *rows, *more]
    )
