"""Run cases in one session: each in its own temporary project, with one drain per wave."""

from __future__ import annotations

import dataclasses
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from drawdown.application import SparkApplication
from drawdown.errors import DrawdownError
from drawdown.layout import quarantine_of
from drawdown.spec import Project
from drawdown.testing.cases.arrivals import Arrivals
from drawdown.testing.cases.case import Case
from drawdown.testing.cases.case_rows import Difference, difference
from drawdown.testing.cases.outputs import sink_rows, table_rows
from drawdown.testing.servers.of_cases import database_server, speaks_kafka, with_broker, with_database
from drawdown.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Result:
    """The result of a case: of all waves, or up to the first that differed or failed.

    Attributes:
        point: where the first drain of each wave was killed (crash.py); empty without kills.
        kills: number of waves whose drain was killed at that point.
    """

    pipeline: str
    case: str
    waves: int
    seconds: float
    differences: tuple[Difference, ...] = ()
    error: DrawdownError | None = None
    point: str = ""
    kills: int = 0

    @property
    def passed(self) -> bool:
        return self.error is None and not self.differences


def run_cases(
    project: Project, cases: Sequence[Case], begin: Callable[[str], None], stop: threading.Event
) -> Iterator[Result]:
    """Run cases one after the other; `begin` is called for each. Ends early, without a result, at `stop`.

    Raises:
        MachineError: jars or Java are missing, or a server that a case needs did not start.
    """
    with machinery(project, cases) as (session, own_project):
        for number, case in enumerate(cases):
            if stop.is_set():
                return
            begin(f"{case.pipeline.name}/{case.name}")
            result = run_case(session, own_project(case, f"case-{number}"), case, stop)
            if not stop.is_set():
                yield result


OwnProject = Callable[[Case, str], Project]
"""Makes the project of a case, with a unique name: its own storage, metastore and database."""


@contextmanager
def machinery(project: Project, cases: Sequence[Case]) -> Iterator[tuple[SparkSession, OwnProject]]:
    """Start a session, and a broker and a database server if a case needs one. Raises as run_cases."""
    from drawdown.launch.local import local_profile, local_session

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drawdown-test-")))
        bench = dataclasses.replace(project, storage_root=str(folder))
        if any(speaks_kafka(case.pipeline) for case in cases):
            bench = stack.enter_context(with_broker(bench, folder))
        session = stack.enter_context(local_session(project, local_profile(project), "drawdown test"))
        databases = stack.enter_context(database_server(cases))
        yield session, lambda case, name: with_database(_own_project(bench, name), case.pipeline, databases)


def _own_project(bench: Project, name: str) -> Project:
    folder = Path(bench.storage_root) / name
    (folder / "storage").mkdir(parents=True)
    # A case brings its own files: no bucket of `storages:` is read.
    places = {
        storage: known.model_copy(update={"address": str(folder / "storages" / storage)})
        for storage, known in bench.storages.items()
    }
    return dataclasses.replace(
        bench,
        storage_root=str(folder / "storage"),
        storages=places,
        metastore_url=f"sqlite:///{folder / 'metastore.db'}",
    )


def run_case(
    session: SparkSession,
    project: Project,
    case: Case,
    stop: threading.Event,
    before_drain: Callable[[Project], None] = lambda project: None,
) -> Result:
    """Bring each wave, drain it and compare; `project` is the case's own. At `stop` the result is void."""
    began, started = datetime.now(UTC), time.monotonic()

    def ended(wave: int, found: Sequence[Difference] = (), error: DrawdownError | None = None) -> Result:
        seconds = time.monotonic() - started
        return Result(case.pipeline.name, case.name, wave, seconds, tuple(found), error)

    wave = 0
    try:
        arrivals = Arrivals(session, project, case)
        arrivals.prepare()
        with Workspace.open(project) as workspace:
            for wave, arriving in enumerate(case.spec.waves, start=1):
                arrivals.deliver(arriving, wave)
                before_drain(project)
                application = SparkApplication(workspace, session=session, stop=stop)
                error = next((each.error for each in application.drain_all([case.pipeline])), None)
                if error is not None or stop.is_set():
                    return ended(wave, error=error)
                differences = [found for found in _compare(session, project, case, wave, began) if found]
                if differences:
                    return ended(wave, differences)
    except DrawdownError as error:
        return ended(wave, error=error)
    return ended(wave)


def _compare(
    session: SparkSession, project: Project, case: Case, wave: int, began: datetime
) -> Iterator[Difference]:
    expected = case.expected(wave, "expected")
    if expected is not None or case.pipeline.sink.readable:
        yield difference("output", sink_rows(session, project, case.pipeline, began), expected)
    rejected = table_rows(session, project, quarantine_of(case.pipeline.name), "delta")
    yield difference("quarantine", rejected, case.expected_quarantine(wave))
