"""Schedules the pipelines of one application: upstream before downstream, the others together.

Each task has its own thread. A task that makes no progress for `drain.stuck_after` is cancelled as far as
possible. If its thread still does not end, because user code never returns, the task is abandoned: its thread
is left behind, and the scheduler no longer waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from drawdown.errors import DrawdownError
from drawdown.spec import Pipeline
from drawdown.spec.project_wide.order import dependencies, in_dependency_order

log = logging.getLogger(__name__)

_LOOKS = 4
"""How often within `stuck_after` a task's signs of progress are checked."""
_LOOK_SECONDS = 0.5
GRACE_SECONDS = 20.0
"""Time between cancelling a task and abandoning it."""

T = TypeVar("T")


@dataclass(eq=False)
class PipelineTask:
    """One pipeline's run, shared by its own thread and the scheduler's.

    Attributes:
        given_up: why the task was cancelled; its work must stop.
        close: closes the run record with an error; set once the record exists.
        job_groups: the job groups of its Spark jobs.
        since: the last finished step, for the error text.
    """

    pipeline: Pipeline
    run_id: str
    given_up: DrawdownError | None = None
    close: Callable[[DrawdownError], None] = lambda error: None
    job_groups: list[str] = field(default_factory=list)
    since: str = "it began"
    _moved_at: float = field(default_factory=time.monotonic)
    _seen: tuple[float, object] = (-inf, None)
    _waits: bool = False

    def __post_init__(self) -> None:
        self.job_groups.append(self.run_id)

    def note_progress(self, what: str = "") -> None:
        """Record progress: a step of this task finished."""
        self.since, self._moved_at = what or self.since, time.monotonic()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Pause the stuck-run timer inside the block."""
        self._waits = True
        try:
            yield
        finally:
            self.note_progress()
            self._waits = False

    def is_stuck(self, signs: Callable[[PipelineTask], object]) -> bool:
        """Whether no step and no Spark task has finished for `stuck_after`."""
        allowed = self.pipeline.drain.stuck_after
        if allowed is None or self._waits or self.given_up is not None:
            return False
        limit, now = allowed.delta.total_seconds(), time.monotonic()
        looked_at, seen = self._seen
        if now - max(self._moved_at, looked_at) >= limit / _LOOKS:
            self._seen = now, seen
            # Signs that cannot be read count as no progress: a hanging task must not hang forever.
            _for_itself(self._look, now, signs)
        return now - self._moved_at >= limit

    def _look(self, now: float, signs: Callable[[PipelineTask], object]) -> None:
        seen = self._seen[1]
        self._seen = now, signs(self)
        if self._seen[1] != seen:
            self.note_progress()


class Slots:
    """Limits how many tasks run at once."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken: set[PipelineTask] = set()

    def take(self, turn: PipelineTask, limit: int, stop: threading.Event) -> bool:
        """Wait for a slot; returns False when asked to stop meanwhile."""
        with self._changed:
            while len(self._taken) >= limit:
                if stop.is_set():
                    return False
                self._changed.wait(_LOOK_SECONDS)
            if stop.is_set():
                return False
            self._taken.add(turn)
            return True

    def give_back(self, turn: PipelineTask) -> None:
        """Free the slot, if the task has one."""
        with self._changed:
            self._taken.discard(turn)
            self._changed.notify_all()


@dataclass
class Scheduler(Generic[T]):
    """Runs all tasks of an application.

    Attributes:
        work: runs a task, in the task's thread.
        signs: returns a value that differs whenever Spark has made progress with a task.
        give_up: sets `given_up` of a task and cancels what it can.
        abandon: records and reports a task whose thread has not ended.
        ended: called with the result of each task, one at a time.
        failed: returns the result of a task that raised, in its own thread or while being abandoned.
        stop: once set, no further pipeline starts.
        abandoned: the tasks whose threads were left behind.
    """

    work: Callable[[PipelineTask], T]
    signs: Callable[[PipelineTask], object]
    give_up: Callable[[PipelineTask], None]
    abandon: Callable[[PipelineTask], T]
    ended: Callable[[T], None]
    stop: threading.Event
    new_run_id: Callable[[], str]
    grace: float = GRACE_SECONDS
    abandoned: list[PipelineTask] = field(default_factory=list)
    failed: Callable[[PipelineTask, BaseException], T] = field(kw_only=True)

    def __post_init__(self) -> None:
        self._ended: SimpleQueue[tuple[PipelineTask, T]] = SimpleQueue()
        self._running: dict[PipelineTask, float] = {}

    def take(self, pipelines: Sequence[Pipeline]) -> list[T]:
        """Run the pipelines; returns the result of each started task, upstream first.

        Raises:
            SpecError: ``group.cycle``.
        """
        by_name = {pipeline.name: pipeline for pipeline in pipelines}
        waiting, came = dependencies(pipelines), dict[str, T]()
        while True:
            if not self.stop.is_set():
                for name in waiting.get_ready() if waiting.is_active() else ():
                    self._begin(PipelineTask(by_name[name], self.new_run_id()))
            if not self._running:
                break
            for turn, result in self._next():
                came[turn.pipeline.name] = result
                _for_itself(self.ended, result)
                waiting.done(turn.pipeline.name)
        return [came[each.name] for each in in_dependency_order(pipelines) if each.name in came]

    def _begin(self, turn: PipelineTask) -> None:
        def work() -> None:
            try:
                result = self.work(turn)
            except BaseException as cause:  # one failure must not end the others' reports
                log.debug("the task of %s raised", turn.pipeline.name, exc_info=True)
                result = self.failed(turn, cause)
            self._ended.put((turn, result))

        self._running[turn] = inf
        # A daemon thread: the interpreter must not wait for one that was left behind.
        threading.Thread(target=work, name=f"turn-{turn.pipeline.name}", daemon=True).start()

    def _next(self) -> Iterator[tuple[PipelineTask, T]]:
        """Yield the tasks that have just ended or were abandoned."""
        try:
            turn, result = self._ended.get(timeout=_LOOK_SECONDS)
        except Empty:
            pass
        else:
            if self._running.pop(turn, None) is not None:
                yield turn, result
        for turn, until in list(self._running.items()):
            if time.monotonic() > until:
                del self._running[turn]
                self.abandoned.append(turn)
                yield turn, self._abandoned(turn)
            elif turn.is_stuck(self.signs):
                self._running[turn] = time.monotonic() + self.grace
                _for_itself(self.give_up, turn)

    def _abandoned(self, turn: PipelineTask) -> T:
        try:
            return self.abandon(turn)
        except Exception as cause:  # the scheduler continues with the others
            log.debug("abandoning %s raised", turn.pipeline.name, exc_info=True)
            return self.failed(turn, cause)


def _for_itself(what: Callable[..., None], *about: object) -> None:
    """Call something for one task in the scheduler's thread; its exceptions must not end the scheduler."""
    try:
        what(*about)
    except Exception:  # every report, cancel or check can raise
        log.debug("watching a task raised", exc_info=True)
