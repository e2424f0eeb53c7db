"""The bench with which a user's pytest runs cases: one Spark for all, a separate project for each."""

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
from drawdown.testing.cases.report import difference_lines
from drawdown.testing.cases.running import Result, machinery, run_case


def cases_of(project: str | os.PathLike[str] = ".", *pipelines: str) -> list[Case]:
    """Return the cases of these pipelines; of all pipelines with cases when none is named. Starts nothing.

    Raises:
        SpecError: a folder is wrong, or a named pipeline has no case.
    """
    known = load_project(Path(project))
    if pipelines:
        chosen = [load_pipeline(known, name) for name in pipelines]
    else:
        chosen = [each for each in load_pipelines(known) if case_names(each)]
    return [case for each in chosen for case in load_cases(each)]


class Bench:
    """Runs cases in one Spark session, with a broker and a database server if a case needs them.

    Use it in a `with` block, at whose end everything that it started is stopped. The project's storage and
    metastore are not touched.
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
        """Deliver each wave, drain it and compare the tables.

        Raises:
            AssertionError: rows are missing or unexpected; the text shows them.
            DrawdownError: whatever ended a drain.
        """
        own = self._own_project(case, f"case-{next(self._numbers)}")
        result = run_case(self._session, own, case, threading.Event())
        if result.error is not None:
            raise result.error
        assert result.passed, "\n".join([str(case), *difference_lines(result)])
        return result
