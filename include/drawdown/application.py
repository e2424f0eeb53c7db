"""What one Spark application does: drain pipelines in dependency order, audit and publish each.

The CLI's `run` and the job that Airflow submits are both this. Spark starts when the first pipeline
has work, so an application with nothing new starts none. One pipeline that fails does not stop the
others; each has its own lease, session, verdict and run record.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Any

from drawdown.errors import DrawdownError, SpecError
from drawdown.metastore import Metastore, this_process
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.plan.preflight import Preflight, preflight
from drawdown.plan.rebuild import in_use
from drawdown.publishing.rebuild_refusals import refuse_rebuild
from drawdown.publishing.replay import refuse_replay
from drawdown.spec import Pipeline, Project, iter_pipelines
from drawdown.spec.interval import Interval, shown
from drawdown.spec.trigger import Trigger
from drawdown.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from drawdown.engine.drain import RunContext
    from drawdown.engine.quarantine_replay import Asked
    from drawdown.quality.audit import GxAuditor


NOTHING_NEW = "nothing new"


class Watcher:
    """What a caller may want to hear of; every method may be left as it is."""

    def looked(self, pipeline: Pipeline, found: Preflight) -> None:
        """Before a pipeline: whether there is work, why, and how much."""

    def starting_spark(self) -> None:
        """Once, before the first drain."""

    def notice(self, pipeline: Pipeline, sentence: str) -> None:
        """A sentence that a person should read."""

    def batch(self, pipeline: Pipeline, batch: Batch) -> None:
        """A batch is staged and noted."""

    def progress(self, pipeline: Pipeline, entry: dict[str, Any]) -> None:
        """Spark has committed a batch, or stands before it; an entry of ``Run.progress``."""

    def judged(self, pipeline: Pipeline, verdict: Verdict, published: int) -> None:
        """A slice was audited, and so many rows were published."""

    def finished(self, report: Report) -> None:
        """After a pipeline."""


@dataclass(frozen=True)
class Report:
    """How it went for one pipeline: a run, an error, or neither when there was nothing new."""

    pipeline: str
    run: Run | None = None
    error: DrawdownError | None = None


@dataclass
class Application:
    """One process's worth of runs.

    Attributes:
        conf: Spark settings to build the session with; empty under spark-submit, which gave them.
        origin: kept in each run record.
        stop: set to stop before the next batch writes; pipelines not yet begun are left out.
        session: a session to use and to leave running, instead of one that lives as long as drain_all.
        note_idle: leave a record (`stop_reason` NOTHING_NEW) of a pipeline that has nothing to do, as a
            scheduler's task that is run again after it succeeded.
    """

    project: Project
    metastore: Metastore
    conf: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    watcher: Watcher = field(default_factory=Watcher)
    session: SparkSession | None = None
    note_idle: bool = False

    def drain_all(self, pipelines: Sequence[Pipeline]) -> list[Report]:
        """Drain each pipeline once, upstream before downstream."""
        ordered = in_dependency_order(pipelines)
        reports: list[Report] = []
        with self._spark(ordered) as session:
            for pipeline in ordered:
                if self.stop.is_set():
                    break
                report = self._drain(pipeline, session)
                self.watcher.finished(report)
                reports.append(report)
        return reports

    def _drain(self, pipeline: Pipeline, session: Callable[[], SparkSession]) -> Report:
        try:
            pipeline = in_use(self.project, self.metastore, pipeline)
            found = preflight(self.project, pipeline, self.metastore)
            self.watcher.looked(pipeline, found)
            if not found.work:
                if self.note_idle:
                    self._note_idle(pipeline)
                return Report(pipeline.name)
            self._wait_until_settled(pipeline, found)
            if self.stop.is_set():
                return Report(pipeline.name)
            from drawdown.engine.drain import drain

            context = self._context(pipeline)
            run = drain(session(), self.project, pipeline, self.metastore, self._auditor(), context)
            return Report(pipeline.name, run)
        except DrawdownError as error:
            return Report(pipeline.name, error=error)

    def _wait_until_settled(self, pipeline: Pipeline, found: Preflight) -> None:
        """A file that may still be written delays the start; one that comes later delays its batch."""
        seconds = found.settled_ms / 1_000 - time.time()
        if seconds > 0:
            sentence = f"a file is younger than `settle`: the run starts in {seconds:.0f} s"
            self.watcher.notice(pipeline, sentence)
            self.stop.wait(seconds)

    def _note_idle(self, pipeline: Pipeline) -> None:
        record = Run(new_run_id(), pipeline.name, holder=this_process(), origin=dict(self.origin))
        self.metastore.start_run(record)
        self.metastore.finish_run(record.run_id, "succeeded", stop_reason=NOTHING_NEW)

    def watch(self, pipeline: Pipeline, trigger: Trigger) -> Report:
        """Run one pipeline until it is stopped or fails; see drawdown.engine.watch."""
        from drawdown.engine.watch import watch

        try:
            pipeline = in_use(self.project, self.metastore, pipeline)
            context = self._context(pipeline)
            with self._spark([pipeline]) as session:
                of = session(), self.project, pipeline, self.metastore, self._auditor(), context
                report = Report(pipeline.name, watch(*of, trigger))
        except DrawdownError as error:
            report = Report(pipeline.name, error=error)
        self.watcher.finished(report)
        return report

    def replay_set_aside(self, pipeline: Pipeline, asked: Asked) -> Report:
        """Replay rows of a pipeline's quarantine; see drawdown.engine.quarantine_replay."""
        from drawdown.engine.quarantine_replay import replay

        try:
            pipeline = in_use(self.project, self.metastore, pipeline)
            context = self._context(pipeline)
            with self._spark([pipeline]) as session:
                of = session(), self.project, pipeline, self.metastore, self._auditor(), context
                report = Report(pipeline.name, replay(*of, asked))
        except DrawdownError as error:
            report = Report(pipeline.name, error=error)
        self.watcher.finished(report)
        return report

    def _judged(self, pipeline: Pipeline, verdict: Verdict, rows: int) -> None:
        from drawdown.quality.data_docs import write_docs

        try:
            write_docs(Storage(self.project.storage_root), verdict)
        except DrawdownError as error:
            # The verdict is in the metastore: a page that cannot be written fails no run.
            self.watcher.notice(pipeline, f"no Data Docs of this run: {error.what}")
        self.watcher.judged(pipeline, verdict, rows)

    def _auditor(self) -> GxAuditor:
        from drawdown.quality.audit import GxAuditor

        return GxAuditor(self.metastore.slice_history)

    def replay(self, pipeline: Pipeline, intervals: Sequence[Interval]) -> list[Report]:
        """Replay these intervals, one after the other, until one fails; see drawdown.engine.replay."""
        from drawdown.engine.replay import replay
        from drawdown.quality.audit import GxAuditor

        reports: list[Report] = []
        with self._spark([pipeline]) as session:
            for interval in intervals:
                if self.stop.is_set() or any(report.error for report in reports):
                    break
                try:
                    pipeline = in_use(self.project, self.metastore, pipeline)
                    refuse_replay(self.project, pipeline, self.metastore, interval)
                    context = self._context(pipeline)
                    of = session(), self.project, pipeline, self.metastore, GxAuditor()
                    run = replay(*of, interval, context)
                    report = Report(pipeline.name, self._offer_downstream(pipeline, run, interval))
                except DrawdownError as error:
                    report = Report(pipeline.name, error=error)
                self.watcher.finished(report)
                reports.append(report)
        return reports

    def rebuild(self, pipeline: Pipeline) -> Report:
        """Drain a shadow of a pipeline and compare it; see drawdown.engine.rebuild.

        Args:
            pipeline: the version that is wanted.
        """
        from drawdown.engine.rebuild import rebuild

        try:
            refuse_rebuild(self.project, pipeline, self.metastore)
            with self._spark([pipeline]) as session:
                of = session(), self.project, pipeline, self.metastore, self._auditor()
                report = Report(pipeline.name, rebuild(*of, self._context(pipeline)))
        except DrawdownError as error:
            report = Report(pipeline.name, error=error)
        self.watcher.finished(report)
        return report

    def _offer_downstream(self, pipeline: Pipeline, run: Run, interval: Interval) -> Run:
        """Tell of the pipelines that read what was replaced: they are replayed when somebody says so."""
        others = [each for each in iter_pipelines(self.project) if isinstance(each, Pipeline)]
        times = f"--from {shown(interval.start)} --to {shown(interval.end)}"
        notices = [
            {
                "id": "replay.downstream",
                "what": f"{other.name} reads what was replaced, and is as it was",
                "about": other.name,
                "do": f"drawdown backfill {other.name} {times}"
                if other.replay
                else f"{other.name} has no `replay:`; add it, or compute all anew: "
                + (
                    f"`drawdown rebuild start {other.name}`"
                    if other.sink.format == "delta"
                    else "in a new pipeline folder with a sink of its own"
                ),
            }
            for other in others
            if pipeline.name in upstreams(other, others)
        ]
        for notice in notices:
            self.watcher.notice(pipeline, f"{notice['what']}: {notice['do']}")
        return self.metastore.update_run(run.run_id, notices=notices) if notices else run

    def _context(self, pipeline: Pipeline) -> RunContext:
        from drawdown.engine.drain import RunContext

        return RunContext(
            run_id=new_run_id(),
            holder=this_process(),
            origin=self.origin,
            stop=self.stop,
            on_batch=lambda batch: self.watcher.batch(pipeline, batch),
            on_progress=lambda entry: self.watcher.progress(pipeline, entry),
            on_verdict=lambda verdict, rows: self._judged(pipeline, verdict, rows),
            on_notice=lambda sentence: self.watcher.notice(pipeline, sentence),
        )

    @contextmanager
    def _spark(self, pipelines: Sequence[Pipeline]) -> Iterator[Callable[[], SparkSession]]:
        """A function that gives the session, started when it is first called."""
        started: list[SparkSession] = []

        def session() -> SparkSession:
            if self.session is not None:
                return self.session
            if not started:
                from drawdown.engine.session import application_session
                from drawdown.quality.audit import prefetch

                self.watcher.starting_spark()
                if any(p.quality.audits for p in pipelines):
                    prefetch()
                started.append(
                    application_session(f"drawdown {' '.join(p.name for p in pipelines)}", self.conf)
                )
            return started[0]

        try:
            yield session
        finally:
            if started:
                from drawdown.engine.session import stop_application

                stop_application(started[0])


def exit_code(reports: Sequence[Report]) -> int:
    """What a process that made these reports ends with: 0, or the exit code of one error.

    An error that a later try can mend comes first: the retry of a group drains what is left, and finds
    the others as they are.
    """
    errors = sorted((r.error for r in reports if r.error), key=lambda error: not error.transient)
    return errors[0].exit_code if errors else 0


def in_dependency_order(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """Upstream first; otherwise by the given order.

    A pipeline is downstream of another when it reads the other's sink path, or its schedule names
    the other's asset.

    Raises:
        SpecError: ``group.cycle``.
    """
    by_name = {p.name: p for p in pipelines}
    graph = {p.name: [u for u in upstreams(p, pipelines) if u in by_name] for p in pipelines}
    try:
        return [by_name[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as cycle:
        raise SpecError(
            "group.cycle",
            f"these pipelines wait for each other: {' → '.join(cycle.args[1])}",
            do="let one of them read something else",
        ) from None


def upstreams(pipeline: Pipeline, pipelines: Sequence[Pipeline]) -> list[str]:
    """Names of the pipelines whose output this one waits for."""
    read = {source.path for source in pipeline.sources.values() if source.path}
    schedule = pipeline.schedule
    awaited = {asset.pipeline for asset in schedule} if isinstance(schedule, list) else set()
    return [
        other.name
        for other in pipelines
        if other.name != pipeline.name and (other.sink.path in read or other.name in awaited)
    ]


def new_run_id() -> str:
    """Sorts by time: 20260131T093000-1a2b3c4d."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
