"""Run cases with a kill at every fault point: each wave's drain dies there, and is then drained again.

The drain that dies runs in its own process (crash_drain.py), because the kill also ends its JVM. The second
drain runs and is compared as in any test.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from drawdown.errors import DrawdownError, SpecError
from drawdown.fault_points import FAULT, STEPS, STRUCK
from drawdown.metastore import Metastore
from drawdown.spec import Project
from drawdown.testing.cases.case import Case
from drawdown.testing.cases.running import Result, machinery, run_case
from drawdown.values.nearest import did_you_mean

_LOOK_EVERY = 0.1
# Steps of every run with rows, for any sink. Other steps depend on the sink.
_ALWAYS = ("lease.take", "run.open", "query.start", "batch.stage", "batch.note", "batch.end", "run.close")


def points(only: Sequence[str]) -> list[str]:
    """Return ``before STEP`` and ``after STEP`` of every step of a run, or the named ones.

    Raises:
        SpecError: ``test.no-point``.
    """
    known = [f"{when} {step}" for step in STEPS for when in ("before", "after")]
    for point in only:
        if point not in known:
            raise SpecError(
                "test.no-point",
                f"{point!r} is not a fault point; {did_you_mean(point, known)}",
                where="--at",
                do="leave it out to kill at every point",
            )
    return [point for point in known if not only or point in only]


def crash_cases(
    project: Project,
    cases: Sequence[Case],
    at: Sequence[str],
    begin: Callable[[str], None],
    stop: threading.Event,
) -> Iterator[Result]:
    """Run each case once per point, killing the drain of every wave there; `begin` is called for each.

    Ends early, without a result, at `stop`.

    Raises:
        SpecError: ``test.memory``: a memory sink dies with its process.
        MachineError: see run_cases.
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


def refuse_unreached(results: Sequence[Result], named: Sequence[str]) -> None:
    """Raise an error if no kill happened at a point although all cases passed: that would prove nothing.

    Args:
        named: the points named on the command line; empty: those that every run with work reaches.

    Raises:
        DrawdownError: ``test.not-reached``.
    """
    if not all(result.passed for result in results):
        return
    killed = {result.point for result in results if result.kills}
    wanted = named or [f"{when} {step}" for step in _ALWAYS for when in ("before", "after")]
    if missed := [point for point in wanted if point not in killed]:
        raise DrawdownError(
            "test.not-reached",
            f"no wave of any case reached {', '.join(missed)}, so nothing was killed there",
            where=", ".join(sorted({f"{result.pipeline}/{result.case}" for result in results})),
            do="add a wave whose rows reach it, or name other points with --at",
        )


def _refuse_memory(cases: Sequence[Case]) -> None:
    for case in cases:
        if case.pipeline.sink.format == "memory":
            raise SpecError(
                "test.memory",
                f"{case.pipeline.name} writes to memory, which is lost with the killed process",
                where=f"include/pipelines/{case.pipeline.name}/pipeline.yaml",
                do="leave --crash out, or give it the sink that it will have",
            )


@dataclass
class _Kills:
    """Called before each wave's drain: drains in a separate process that dies at the point."""

    case: Case
    point: str
    stop: threading.Event
    number: int = 0

    def __call__(self, project: Project) -> None:
        folder = Path(tempfile.mkdtemp(prefix="kill-", dir=Path(project.storage_root).parent))
        struck, drained = folder / "struck", folder / "drained"
        process = subprocess.Popen(
            [sys.executable, "-m", "drawdown.testing.cases.crash_drain"],
            env={**os.environ, FAULT: f"kill {self.point}", STRUCK: str(struck)},
            stdin=subprocess.PIPE,
            stderr=(folder / "said").open("wb"),
            start_new_session=True,
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as inlet:
            pickle.dump((project, self.case.pipeline.name, drained), inlet)
        try:
            while process.poll() is None and not self.stop.wait(_LOOK_EVERY):
                continue
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if self.stop.is_set():
            return
        if process.returncode == -signal.SIGKILL and struck.exists():
            self.number += 1
            _end_lease(project, self.case.pipeline.name)
        elif process.returncode or not drained.exists():
            raise self._not_killed(process.returncode, folder / "said")

    def _not_killed(self, code: int, said: Path) -> DrawdownError:
        lines = said.read_text(errors="replace").strip().splitlines()
        last = f": {lines[-1].strip()[:200]}" if lines else ""
        ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return DrawdownError(
            "test.not-killed",
            f"the drain that was to be killed {self.point} ended by itself before that, with {ended}{last}",
            where=f"{self.case.pipeline.name}/{self.case.name}",
            do=f"make `drawdown test {self.case.pipeline.name}` pass without --crash; then look whether the"
            " machine has memory for a second Spark",
        )


def _end_lease(project: Project, pipeline: str) -> None:
    """Release the lease of the dead process instead of waiting for it to expire."""
    with Metastore.open(project.metastore_url) as metastore:
        lease = metastore.holder_of(pipeline)
        if lease is not None:
            metastore.release(lease)
