"""Runs cases with a kill at every fault point: a wave is drained apart, dies there, and is drained again.

The drain that dies is a process of its own (crash_drain.py): a kill takes its JVM along. The one that goes
on is drained and compared as in any test.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from drawdown.errors import SpecError
from drawdown.fault_points import FAULT, STEPS
from drawdown.metastore import Metastore
from drawdown.spec import Project
from drawdown.testing.cases.case import Case
from drawdown.testing.cases.running import Result, machinery, run_case
from drawdown.values.nearest import did_you_mean

_LOOK_EVERY = 0.1


def points(only: Sequence[str]) -> list[str]:
    """``before STEP`` and ``after STEP`` of every step of a run, or those named.

    Raises:
        SpecError: ``test.no-point``.
    """
    known = [f"{when} {step}" for step in STEPS for when in ("before", "after")]
    for point in only:
        if point not in known:
            raise SpecError(
                "test.no-point",
                f"{point!r} is no fault point; {did_you_mean(point, known)}",
                where="--at",
                do="leave it out to strike at every point",
            )
    return [point for point in known if not only or point in only]


def crash_cases(
    project: Project,
    cases: Sequence[Case],
    at: Sequence[str],
    begin: Callable[[str], None],
    stop: threading.Event,
) -> Iterator[Result]:
    """Run each case once per point, killing the drain of every wave there; `begin` hears of each.

    Ends early, without a result, at `stop`.

    Raises:
        SpecError: ``test.memory``: such a sink dies with its process.
        MachineError: as run_cases.
    """
    _refuse_memory(cases)
    with machinery(project, cases) as (session, own_project):
        for number, case in enumerate(cases):
            for struck, point in enumerate(at):
                if stop.is_set():
                    return
                begin(f"{case.pipeline.name}/{case.name}: kill {point}")
                kills = _Kills(case, point, stop)
                own = own_project(case, f"case-{number}-{struck}")
                result = run_case(session, own, case, stop, kills)
                if not stop.is_set():
                    yield replace(result, point=point, kills=kills.number)


def _refuse_memory(cases: Sequence[Case]) -> None:
    for case in cases:
        if case.pipeline.sink.format == "memory":
            raise SpecError(
                "test.memory",
                f"{case.pipeline.name} writes to memory, which is gone with the process that is killed",
                where=f"include/pipelines/{case.pipeline.name}/pipeline.yaml",
                do="leave --crash out, or give it the sink that it will have",
            )


@dataclass
class _Kills:
    """Called before each wave's drain: drains in a process of its own that dies at the point."""

    case: Case
    point: str
    stop: threading.Event
    number: int = 0

    def __call__(self, project: Project) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "drawdown.testing.cases.crash_drain"],
            env={**os.environ, FAULT: f"kill {self.point}"},
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdin is not None
        with process.stdin as inlet:
            pickle.dump((project, self.case.pipeline.name), inlet)
        try:
            while process.poll() is None and not self.stop.wait(_LOOK_EVERY):
                continue
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode == -signal.SIGKILL:
            self.number += 1
            _end_lease(project, self.case.pipeline.name)


def _end_lease(project: Project, pipeline: str) -> None:
    """Instead of waiting for a dead holder's term to end: it is known to be dead."""
    with Metastore.open(project.metastore_url) as metastore:
        lease = metastore.holder_of(pipeline)
        if lease is not None:
            metastore.release(lease)
