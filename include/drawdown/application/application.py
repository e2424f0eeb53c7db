"""What one Spark application does: drain pipelines in dependency order, audit and publish each.

The CLI's `run` and the job that Airflow submits both use it. Spark starts when the first pipeline has work,
so without new data it does not start. Pipelines that do not wait for each other are drained together
(scheduler.py). One that fails or hangs does not stop the others; each has its own lease, session, pool of
Spark jobs, verdict and run record.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from drawdown.application.cluster_watch import ClusterWatch, cluster_lost
from drawdown.application.metering import Meter
from drawdown.application.scheduler import PipelineTask, Scheduler, Slots
from drawdown.application.size import chosen_size
from drawdown.application.suspects import in_turns
from drawdown.application.unstarted import new_run_id, note_unstarted
from drawdown.application.watcher import Report, Watcher
from drawdown.errors import BusyError, DrawdownError
from drawdown.metastore import this_process
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.observe.lineage.run_events import RunLineage
from drawdown.observe.record import record, record_backlog
from drawdown.plan.deaths import DEAD
from drawdown.plan.downstream import offers_downstream
from drawdown.plan.preflight import Preflight, preflight
from drawdown.plan.reachable_brokers import require_sink_broker, require_source_brokers
from drawdown.plan.version_in_use import in_use
from drawdown.rebuild.refusals import refuse_rebuild
from drawdown.replay.publish import refuse_replay
from drawdown.spec import Pipeline, Project, RunCluster
from drawdown.spec.project_wide.order import in_dependency_order
from drawdown.spec.scheduling.trigger import Trigger
from drawdown.storage.put_if_absent import refuse_unsafe
from drawdown.values.interval import Interval
from drawdown.workspace import Generation, Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from drawdown.drain.attempt import Attempt
    from drawdown.drain.run_context import RunContext
    from drawdown.quality.audit import GxAuditor
    from drawdown.quarantine.request import ReplayRequest


_AT_ONCE_PER_CORE = 2
_MOST_AT_ONCE = 8


@dataclass
class SparkApplication:
    """Runs pipelines in one process.

    Attributes:
        conf: Spark settings to build the session with; empty under spark-submit, which sets them. A function
            is called when Spark starts.
        origin: kept in each run record.
        stop: set to stop before the next batch writes; pipelines not yet begun are left out.
        session: a session to use and leave running, instead of one that ends with drain_all.
        explain_loss: returns why the cluster was lost, as far as that is known, from the project, the
            profile's name and the origin; empty when nothing is.
        note_idle: write a record (`stop_reason` NOTHING_NEW) for a pipeline without work, as for a
            scheduler's task that is run again after it succeeded.
        left_behind: pipelines whose code never returned. Their runs are recorded as failed, but only the end
            of the process ends their threads: end it by force (`os._exit`).
    """

    workspace: Workspace
    conf: Mapping[str, str] | Callable[[], Mapping[str, str]] = field(default_factory=dict)
    origin: Mapping[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    watcher: Watcher = field(default_factory=Watcher)
    session: SparkSession | None = None
    explain_loss: Callable[[Project, str, Mapping[str, Any]], str] = lambda project, cluster, origin: ""
    note_idle: bool = False
    left_behind: list[str] = field(default_factory=list)
    _meter: Meter = field(init=False, repr=False)
    _lineage: RunLineage = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._speaking = threading.RLock()
        self._slots = Slots()
        self._lineage = RunLineage(self.workspace)
        self._root = self.session
        self._lost: DrawdownError | None = None

    def drain_all(self, pipelines: Sequence[Pipeline]) -> list[Report]:
        """Drain each pipeline once, upstream before downstream, the others together.

        Returns:
            a report per started pipeline, upstream first.
        """
        with self._spark(in_dependency_order(pipelines)) as session:
            turns = Scheduler(
                lambda turn: self._drain(turn, session),
                self._signs,
                self._give_up,
                self._abandon,
                lambda report: self._tell(self.watcher.finished, report),
                self.stop,
                new_run_id,
                failed=self._failed,
            )
            reports = self._take_turns(turns, pipelines)
            for turn in turns.abandoned:
                self._end_lease(turn)
        return reports

    def _take_turns(self, turns: Scheduler[Report], pipelines: Sequence[Pipeline]) -> list[Report]:
        """Drain those together that nothing is known against, then each suspect alone (suspects.py)."""
        came: dict[str, Report] = {}
        for together in in_turns(self.workspace.metastore, pipelines):
            came |= {report.pipeline: report for report in turns.take(together)}
            if any(report.error is not None and report.error.id in DEAD for report in came.values()):
                # Nothing can run in this JVM: what has not begun has no death of its own.
                break
        return [came[each.name] for each in in_dependency_order(pipelines) if each.name in came]

    def _drain(self, turn: PipelineTask, session: Callable[[], SparkSession]) -> Report:
        pipeline = turn.pipeline
        try:
            pipeline = self._in_use(pipeline)
            self._require(require_source_brokers, pipeline)
            found = preflight(self.workspace, pipeline)
            self._tell(self.watcher.looked, pipeline, found)
            record_backlog(self.workspace, pipeline.name, found.backlog)
            if found.error is not None:
                self._note_unstarted(pipeline, found.error)
                raise found.error
            if not found.work:
                if self.note_idle:
                    self._note_unstarted(pipeline)
                return Report(pipeline.name)
            self._require(require_sink_broker, pipeline)
            self._refuse_before_spark(pipeline)
            with turn.waiting():
                self._wait_until_settled(pipeline, found)
                if self.stop.is_set() or not self._slots.take(turn, at_once(session()), self.stop):
                    return Report(pipeline.name, stopped=True)
            if turn.given_up is not None:
                raise turn.given_up
            from drawdown.drain.drain import drain
            from drawdown.spark.job_groups import own_jobs

            attempt = self._attempt(session(), pipeline, turn)
            own_jobs(attempt.root, pipeline.name, turn.run_id)
            with self._meter.charged(attempt.root, turn.run_id), self._told(pipeline, turn.run_id):
                run = drain(attempt)
            return Report(pipeline.name, run)
        except DrawdownError as error:
            return Report(pipeline.name, error=self._lost or error)
        finally:
            self._slots.give_back(turn)

    def _failed(self, turn: PipelineTask, cause: BaseException) -> Report:
        """Report an unexpected exception of a task as an error of its pipeline."""
        error = cause if isinstance(cause, DrawdownError) else self._unforeseen(turn.pipeline, cause)
        return Report(turn.pipeline.name, error=turn.given_up or error)

    def _unforeseen(self, pipeline: Pipeline, cause: BaseException) -> DrawdownError:
        """Return the error for an exception that no step has explained."""
        from drawdown.drain.failures import unexpected

        return self._cut_off(pipeline, cause) or unexpected(pipeline, cause)

    def _cut_off(self, pipeline: Pipeline, cause: BaseException) -> DrawdownError | None:
        """Return the error for an exception that follows from a lost cluster or a JVM that is gone."""
        from drawdown.drain.failures import without_spark
        from drawdown.spark.gateway import is_cut_off

        return self._lost or (without_spark(pipeline) if is_cut_off(cause) else None)

    # Called by the scheduler thread for a task

    def _signs(self, turn: PipelineTask) -> object:
        from drawdown.spark.job_groups import job_signs

        return job_signs(self._root, turn.job_groups) if self._root is not None else None

    def _give_up(self, turn: PipelineTask) -> None:
        from drawdown.drain.failures import stuck
        from drawdown.spark.job_groups import cancel_jobs

        turn.given_up = stuck(turn.pipeline, turn.since)
        if self._root is not None:
            cancel_jobs(self._root, turn.job_groups)

    def _abandon(self, turn: PipelineTask) -> Report:
        """Record a task whose thread does not end. The thread keeps the lease until the others are done;
        nothing it does becomes durable."""
        assert turn.given_up is not None
        # Even if the record fails: the slot is free, and the process must be ended by force.
        self._slots.give_back(turn)
        self.left_behind.append(turn.pipeline.name)
        # An unreachable metastore must not end the others: the next run closes the open record.
        with suppress(DrawdownError):
            turn.close(turn.given_up)
        self._lineage.ended(turn.pipeline, turn.run_id)
        return Report(turn.pipeline.name, error=turn.given_up)

    def _end_lease(self, turn: PipelineTask) -> None:
        with suppress(DrawdownError):
            lease = self.workspace.metastore.holder_of(turn.pipeline.name)
            if lease is not None and lease.run_id == turn.run_id:
                self.workspace.metastore.release(lease)

    def _tell(self, what: Callable[..., None], *about: Any) -> None:
        with self._speaking:
            what(*about)

    def _wait_until_settled(self, pipeline: Pipeline, found: Preflight) -> None:
        """Wait while a file may still be written. A file that arrives later delays its batch instead."""
        seconds = found.settled_ms / 1_000 - time.time()
        if seconds > 0:
            sentence = f"a file is younger than `settle`: the run starts in {seconds:.0f} s"
            self._tell(self.watcher.notice, pipeline, sentence)
            self.stop.wait(seconds)

    def _note_unstarted(self, pipeline: Pipeline, error: DrawdownError | None = None) -> None:
        application = self._meter.application()
        run_id = note_unstarted(self.workspace.metastore, pipeline.name, self.origin, application, error)
        if error is not None:
            self._lineage.opened(pipeline, run_id)
            self._lineage.ended(pipeline, run_id)

    @contextmanager
    def _told(self, pipeline: Pipeline, run_id: str) -> Iterator[None]:
        """Tell of the end of the block's run, after what it published is visible and its lease is free."""
        try:
            yield
        finally:
            self._lineage.ended(pipeline, run_id)

    def _require(self, brokers: Callable[[Project, Pipeline], None], pipeline: Pipeline) -> None:
        """Before Spark starts; a drain in a Spark that runs asks by itself."""
        if self._root is not None:
            return
        try:
            brokers(self.workspace.project, pipeline)
        except DrawdownError as error:
            self._note_unstarted(pipeline, error)
            raise

    def _refuse_before_spark(self, pipeline: Pipeline) -> None:
        """Once Spark runs, the drain asks the same, under its lease."""
        if self._root is not None:
            return
        from drawdown.drain.before_spark import refuse_before_spark

        try:
            refuse_before_spark(Generation.of(self.workspace, pipeline))
        except DrawdownError as error:
            self._note_unstarted(pipeline, error)
            raise

    def watch(self, pipeline: Pipeline, trigger: Trigger) -> Report:
        """Run one pipeline until it is stopped or fails; see drawdown.drain.watch."""
        from drawdown.drain.watch import watch

        return self._alone(pipeline, self._in_use, partial(watch, trigger=trigger))

    def replay_set_aside(self, pipeline: Pipeline, asked: ReplayRequest) -> Report:
        """Replay rows of a pipeline's quarantine; see drawdown.quarantine.spark_replay."""
        from drawdown.quarantine.spark_replay import replay

        return self._alone(pipeline, self._in_use, partial(replay, asked=asked))

    def rebuild(self, pipeline: Pipeline) -> Report:
        """Drain a shadow of a pipeline and compare it; see drawdown.rebuild.spark_rebuild.

        Args:
            pipeline: the version to rebuild.
        """
        from drawdown.rebuild.spark_rebuild import rebuild

        def allowed(wanted: Pipeline) -> Pipeline:
            refuse_rebuild(self.workspace, wanted)
            return wanted

        return self._alone(pipeline, allowed, rebuild)

    def _alone(
        self,
        pipeline: Pipeline,
        allowed: Callable[[Pipeline], Pipeline],
        work: Callable[[Attempt], Run],
    ) -> Report:
        """Run something other than a drain for one pipeline.

        Args:
            allowed: returns the pipeline version to run, or raises RefusedError.
        """
        try:
            ready = allowed(pipeline)
            with self._spark([ready]) as session:
                attempt = self._attempt(session(), ready)
                with self._told(ready, attempt.context.run_id):
                    report = Report(pipeline.name, work(attempt))
        except DrawdownError as error:
            report = Report(pipeline.name, error=self._lost or error)
        except Exception as cause:
            if (cut := self._cut_off(pipeline, cause)) is None:
                raise
            report = Report(pipeline.name, error=cut)
        self.watcher.finished(report)
        return report

    def _in_use(self, pipeline: Pipeline) -> Pipeline:
        return in_use(self.workspace, pipeline)

    def _judged(self, pipeline: Pipeline, verdict: Verdict, rows: int) -> None:
        from drawdown.quality.data_docs import write_docs

        try:
            write_docs(self.workspace.storage, verdict)
        except DrawdownError as error:
            # The verdict is in the metastore: a page that cannot be written does not fail the run.
            self._tell(self.watcher.notice, pipeline, f"no Data Docs for this run: {error.what}")
        self._tell(self.watcher.judged, pipeline, verdict, rows)

    def _auditor(self, turn: PipelineTask | None = None) -> GxAuditor:
        from drawdown.quality.audit import GxAuditor

        if turn is None:
            return GxAuditor(self.workspace.metastore.slice_history)
        return GxAuditor(
            self.workspace.metastore.slice_history, lambda audited: self._waits_for_audit(turn, audited)
        )

    @contextmanager
    def _waits_for_audit(self, turn: PipelineTask, audited: str) -> Iterator[Callable[[str], None]]:
        name = turn.pipeline.name

        def refuse_if_hopeless(audited: str) -> None:
            if audited in self.left_behind:
                raise BusyError(
                    "audit.blocked",
                    f"{name} waited for the audit of {audited}, which never ended: its slice was not judged",
                    where=f"pipeline {name}",
                    do=f"run `drawdown run {name}`: it audits the staged rows",
                )

        self._tell(self.watcher.notice, turn.pipeline, f"waits for the audit of {audited}")
        with turn.waiting():
            yield refuse_if_hopeless

    def replay(self, pipeline: Pipeline, intervals: Sequence[Interval]) -> list[Report]:
        """Replay these intervals, one after the other, until one fails; see drawdown.replay.spark_replay."""
        from drawdown.quality.audit import GxAuditor
        from drawdown.replay.spark_replay import replay

        reports: list[Report] = []
        with self._spark([pipeline]) as session:
            for interval in intervals:
                if self.stop.is_set() or any(report.error for report in reports):
                    break
                try:
                    pipeline = self._in_use(pipeline)
                    refuse_replay(self.workspace, pipeline, interval)
                    # An interval of the past is not compared with the latest slices.
                    attempt = replace(self._attempt(session(), pipeline), auditor=GxAuditor())
                    with self._told(pipeline, attempt.context.run_id):
                        run = replay(attempt, interval)
                    report = Report(pipeline.name, self._offered(pipeline, run, interval))
                except DrawdownError as error:
                    report = Report(pipeline.name, error=self._lost or error)
                self.watcher.finished(report)
                reports.append(report)
        return reports

    def _offered(self, pipeline: Pipeline, run: Run, interval: Interval) -> Run:
        notices = offers_downstream(self.workspace.project, pipeline, interval)
        for notice in notices:
            self._tell(self.watcher.notice, pipeline, f"{notice['what']}: {notice['do']}")
        return self.workspace.metastore.update_run(run.run_id, notices=notices) if notices else run

    def _attempt(self, root: SparkSession, pipeline: Pipeline, turn: PipelineTask | None = None) -> Attempt:
        from drawdown.drain.attempt import Attempt

        return Attempt(root, self.workspace, pipeline, self._auditor(turn), self._context(pipeline, turn))

    def _context(self, pipeline: Pipeline, turn: PipelineTask | None = None) -> RunContext:
        from drawdown.drain.run_context import RunContext

        run = turn or PipelineTask(pipeline, new_run_id())

        def on_batch(batch: Batch) -> None:
            run.note_progress(f"batch {batch.batch_id}")
            self._tell(self.watcher.batch, pipeline, batch)

        def on_progress(entry: dict[str, Any]) -> None:
            run.note_progress()
            self._tell(self.watcher.progress, pipeline, entry)

        def on_verdict(verdict: Verdict, rows: int) -> None:
            run.note_progress("the audit")
            self._judged(pipeline, verdict, rows)

        def on_open(close: Callable[[DrawdownError], None]) -> None:
            run.close = close
            self._lineage.opened(pipeline, run.run_id)

        return RunContext(
            run_id=run.run_id,
            holder=this_process(),
            application=self._meter.application(),
            origin={**self.origin, **(chosen_size(self._root) if self._root else {})},
            stop=self.stop,
            on_batch=on_batch,
            on_progress=on_progress,
            on_verdict=on_verdict,
            on_notice=lambda sentence: self._tell(self.watcher.notice, pipeline, sentence),
            on_open=on_open,
            on_planned=partial(self._lineage.planned, run.run_id),
            on_published=partial(self._lineage.published, pipeline, run.run_id),
            on_query=lambda group: run.job_groups.append(group),
            waiting=run.waiting,
            given_up=lambda: self._lost or run.given_up,
        )

    @contextmanager
    def _spark(self, pipelines: Sequence[Pipeline]) -> Iterator[Callable[[], SparkSession]]:
        """Yield a function that returns the session and starts it on the first call; a failed start is not
        repeated."""
        starting, failed, up = threading.Lock(), list[Exception](), threading.Event()
        watch: list[ClusterWatch] = []
        cluster = pipelines[0].cluster
        profile, going_on = self.workspace.project.clusters[cluster], self.session is not None
        self._meter = Meter(self.workspace.metastore, cluster, profile, going_on=going_on)

        def session() -> SparkSession:
            with starting:
                if failed:
                    raise failed[0]
                if self._root is None or not up.is_set():
                    try:
                        self._root = self._take_over() if going_on else self._start(pipelines)
                    except Exception as cause:
                        failed.append(cause)
                        raise
                if not up.is_set():
                    watch.append(self._watched(self._root, cluster))
                self._meter.spark_is_up(self._root, several=len(pipelines) > 1)
                up.set()
                return self._root

        try:
            yield session
        finally:
            for each in watch:
                each.end()
            self._lineage.close()
            if self._root is not None and up.is_set():
                self._meter.spark_ends(self._root)
            # A thread that was left behind can block Spark's stop forever.
            if self._root is not None and not going_on and not self.left_behind:
                from drawdown.spark.session import stop_application

                stop_application(self._root)
                self._root = None
            self._meter.end()
            # Not earlier: what a run has used is known when its application ends.
            record(self.workspace, [pipeline.name for pipeline in pipelines])

    def _watched(self, root: SparkSession, cluster: str) -> ClusterWatch:
        """Start to watch the cluster; once it is lost, that is the error of every run that is under way."""

        def lost(what: str) -> None:
            why = self.explain_loss(self.workspace.project, cluster, self.origin)
            self._lost = cluster_lost(cluster, f"{what}: {why}" if why else what)
            self._meter.spark_ends(root)

        own = isinstance(self.workspace.project.clusters[cluster], RunCluster)
        watch = ClusterWatch(root, lost, own=own)
        watch.start()
        return watch

    def _take_over(self) -> SparkSession:
        """Return the given session, after telling it about this project's buckets."""
        from drawdown.spark.object_storage import reach_buckets

        assert self.session is not None
        refuse_unsafe(self.workspace.storage)
        reach_buckets(self.session, self.workspace.project)
        return self.session

    def _start(self, pipelines: Sequence[Pipeline]) -> SparkSession:
        from drawdown.quality.audit import prefetch
        from drawdown.spark.session import application_session

        refuse_unsafe(self.workspace.storage)
        self._tell(self.watcher.starting_spark)
        if any(p.quality.audits for p in pipelines):
            prefetch()
        conf = self.conf() if callable(self.conf) else self.conf
        return application_session(
            f"drawdown {' '.join(p.name for p in pipelines)}", conf, self.workspace.project
        )


def at_once(root: SparkSession) -> int:
    """How many pipelines an application drains at the same time; see docs/groups.md."""
    return min(_MOST_AT_ONCE, _AT_ONCE_PER_CORE * root.sparkContext.defaultParallelism)


def exit_code(reports: Sequence[Report]) -> int:
    """Return the exit code for these reports: 0, or that of one error.

    Retryable errors come first: the retry of a group drains what is left and does not change the rest.
    """
    errors = sorted((r.error for r in reports if r.error), key=lambda error: not error.transient)
    return errors[0].exit_code if errors else 0
