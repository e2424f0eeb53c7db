"""A drain: one run against the live checkpoint, until its backlog is empty or its bound is reached.

 1  load and validate the spec (the caller has done it: a Pipeline is valid)
 2  take the lease
 3  open the checkpoint's generation and plan (planning.py): refuse or continue
 4  reconcile with Spark's commit log; close changes that crashed runs left open and mark those runs; begin
    this run's change, which names the folder for its files
 5  record the sources' current end: progress is measured against this backlog
 6  start the query in its own session
 7  per batch: check the lease, stage, count, note (batch_step.py)
 8  stop when drained, at the bound, or when asked: before the next batch writes
 9  audit the slice: every committed batch that no audit has judged, including those of earlier runs
10  publish or hold
11  write the run record
12  release the lease

After a crash at any point, a new run produces the same rows as a run that never crashed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from drawdown.checkpoint import plain_path
from drawdown.drain.attempt import Attempt
from drawdown.drain.batch_step import BatchStep, StopDrain
from drawdown.drain.failures import UNEXPECTED, of_run
from drawdown.drain.listener import listener_of, listening
from drawdown.drain.planning import plan_pipeline
from drawdown.drain.progress import RunProgress
from drawdown.drain.reconcile import clean_up_crashed_runs, reconcile, refuse_postponed
from drawdown.drain.slice import SliceAuditor, not_passed
from drawdown.drain.suspect_files import SuspectFiles
from drawdown.drain.tally import Tally
from drawdown.errors import DrawdownError, SourceError, TransformError
from drawdown.fault_points import durable
from drawdown.metastore.lease_heartbeat import LeaseHeartbeat
from drawdown.metastore.records import Batch, Run, RunState, Verdict
from drawdown.plan.fingerprint import looked_at, spec_fingerprint
from drawdown.plan.preflight import preflight
from drawdown.plan.spec_changes import changes
from drawdown.plan_verdicts import PlanVerdict
from drawdown.publishing.commit_groups import tell_commit_groups
from drawdown.publishing.staging import Staging
from drawdown.query.carriers import write_carriers
from drawdown.query.query import Query
from drawdown.rows.quarantine_replay import plan_their_batch
from drawdown.rows.quarantine_staging import QUARANTINE_SCHEMA
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.stage import SinkStage, sink_for
from drawdown.sources.committed_offsets import CommittedOffsets
from drawdown.sources.files.notified.kept import KeptArrivals, keep
from drawdown.sources.files.set_aside import SetAsideFile, set_aside
from drawdown.sources.files.spark_batch_files import BatchFiles
from drawdown.sources.files.spark_inference import keep_schemas
from drawdown.sources.files.spark_trouble import FileTrouble
from drawdown.sources.findings import waiting_text
from drawdown.sources.kafka.spark_losses import Losses
from drawdown.spark.foreach_batch import each_batch
from drawdown.spark.job_groups import end_stuck_query
from drawdown.spark.session import reading_session
from drawdown.spark.versions import state_formats
from drawdown.spec import pipeline_names
from drawdown.spec.project_wide.claims import claims_of
from drawdown.spec.scheduling.trigger import AVAILABLE_NOW, Trigger
from drawdown.values.interval import EPOCH
from drawdown.values.text import counted
from drawdown.workspace import Generation

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
# Errors that ask for other content of a file.
_ABOUT_FILES = ("source.malformed", "source.unreadable-file")
DRAINED = "drained"
ASKED_TO_STOP = "asked to stop"
FINISHED = "the batch that an earlier run had begun is finished under its own rules"


def drain(attempt: Attempt) -> Run:
    """Drain one pipeline, in the steps of this module's docstring.

    Returns:
        The finished run record, with verdict pass, warn or empty.

    Raises:
        BusyError: another run holds the lease.
        RefusedError, SpecError, SourceError, TransformError: nothing of the failed batch is visible.
        AuditFailed: the slice was judged fail or error; it is not published.
        the error from ``context.given_up``: the run was cancelled in the middle of a step.
    """
    return under_lease(attempt, attempt.context.record(attempt.pipeline.name), partial(Drain, attempt))


def under_lease(attempt: Attempt, record: Run, make: Callable[[LeaseHeartbeat], Drain]) -> Run:
    """Take the lease, open the run record and do the work; always close both. Raises as `drain`."""
    workspace, pipeline = attempt.workspace, attempt.pipeline
    ttl = workspace.project.lease_ttl.delta
    with durable("lease.take"):
        lease = workspace.metastore.acquire(pipeline.name, record.holder, record.run_id, ttl)
    with LeaseHeartbeat(workspace.metastore, lease, ttl) as heartbeat:
        with durable("run.open"):
            workspace.metastore.start_run(record)
        work = make(heartbeat)
        work.context.on_open(work.abandon)
        try:
            return work.run()
        except Exception as cause:  # the record must not stay `running` whatever happens
            log.debug("run %s ended with", record.run_id, exc_info=True)
            error = work.context.given_up() or heartbeat.lost()
            error = error or of_run(attempt.root, workspace, pipeline, cause)
            work.fail(error)
            raise error from (cause if error.id == UNEXPECTED else None)


@dataclass(frozen=True)
class Opened:
    """The state that all steps after opening work on.

    Attributes:
        generation: the generation, with its checkpoint already in the metastore.
        fingerprint: what the checkpoint freezes of this spec.
    """

    generation: Generation
    query: Query
    fingerprint: dict[str, Any]
    losses: Losses
    trouble: FileTrouble
    batch_files: BatchFiles
    slice: SliceAuditor


@dataclass
class Drain:
    """One run over the live checkpoint. A watch overrides what it does differently (watch.py)."""

    attempt: Attempt
    heartbeat: LeaseHeartbeat
    trigger: Trigger = AVAILABLE_NOW

    def __post_init__(self) -> None:
        attempt = self.attempt
        self.workspace, self.pipeline, self.context = attempt.workspace, attempt.pipeline, attempt.context
        self.sink: SinkStage = sink_for(self.workspace, self.pipeline)
        self.quarantine = DeltaSink.quarantine(self.workspace.project, self.pipeline)
        self.tally = Tally()

    def run(self) -> Run:
        with self.tally.timed("open"):
            opened = self._open()
        told = self.context.on_notice
        with self.tally.timed("query"), listening(opened.query.session, listener_of(self.pipeline), told):
            stop_reason = self._drain(opened)
        if (verdict := self._judge(opened)).outcome in ("fail", "error"):
            raise not_passed(self.pipeline, verdict)
        self._conclude(opened, stop_reason)
        if stop_reason == DRAINED:
            self._note_listed(opened)
        self._note_looked_at(opened.generation)
        self.tally.notices += opened.slice.check_held_deadlines(self.context.on_notice)
        return self.finish(
            "stopped" if stop_reason == ASKED_TO_STOP else "succeeded",
            stop_reason=f"{stop_reason}{self._left(stop_reason)}{opened.slice.waiting()}",
        )

    # 3 and 4

    def _open(self) -> Opened:
        plan = plan_pipeline(self.attempt.root, self.workspace, self.pipeline, self.trigger)
        query = plan.accepted()
        self.pipeline = plan.generation.pipeline
        # Not earlier: a refused checkpoint has nothing to report at the end.
        self.tally.generation = plan.generation
        self.tally.notices += plan.losses.notices()
        for verdict in plan.trouble.verdicts:
            self._tell(verdict)
        keep_schemas(plan.generation, query.inferred)
        found = plan.generation.checkpoint
        refuse_postponed(plan.generation)
        self._keep_arrivals(plan.generation, {n: each.before for n, each in plan.trouble.arrived.items()})
        self._keep_set_aside(plan.generation, plan.trouble)
        if found is not None:
            reconcile(plan.generation, self.heartbeat.lease)
        identity = self.sink.bind(self.sink.declared_schema() or query.schema, found)
        self.quarantine.bind(QUARANTINE_SCHEMA, found)
        fingerprint = {**plan.fingerprint, "sink.identity": identity}
        with durable("checkpoint.note"):
            checkpoint = found or self.workspace.metastore.create_checkpoint(
                self.heartbeat.lease, plan.generation.number, plan.generation.path, fingerprint
            )
        self._note_claims()
        generation = self.tally.generation = replace(plan.generation, checkpoint=checkpoint)
        self.context.on_planned(generation, query)
        if checkpoint.judging != self.pipeline.judging:
            self.workspace.metastore.note_judging(
                self.heartbeat.lease, checkpoint.generation, self.pipeline.judging
            )
        with durable("past.settle"):
            clean_up_crashed_runs(generation, self.heartbeat.lease, self.sink)
        committed = generation.files.last_commit_batch()
        self.tally.staging = Staging.begin(
            generation,
            self.heartbeat.lease,
            [self.quarantine, self.sink],
            first_batch=0 if committed is None else committed + 1,
        )
        files = self.tally.batch_files = BatchFiles(
            generation, query.source_order, plan.trouble, wait=self._wait_for_files, tell=self._tell
        )
        slice_ = SliceAuditor(generation, self.attempt.auditor, self.sink, query, self._current_lease)
        return Opened(generation, query, fingerprint, plan.losses, plan.trouble, files, slice_)

    def _note_claims(self) -> None:
        """Record what the pipeline takes of what all share: a later folder with the same is refused."""
        if not self.pipeline.apart:
            project = self.workspace.project
            lines, there = claims_of(project, self.pipeline), pipeline_names(project)
            self.workspace.metastore.note_claims(self.heartbeat.lease, lines, there)

    # 5 to 8

    def _drain(self, opened: Opened) -> str:
        generation, query, started = opened.generation, opened.query, time.monotonic()
        reading = reading_session(self.attempt.root, self.pipeline)
        SuspectFiles(reading, generation, query, opened.trouble, self._note_read, self._tell).read()
        write_carriers(generation, self.context.run_id)
        plan_their_batch(generation, query.replays)
        step = BatchStep(
            generation,
            query,
            self.sink,
            self.quarantine,
            reading,
            opened.batch_files,
            lease=self._current_lease,
            stop_reason=lambda batches: self._stop_reason(batches, time.monotonic() - started),
            on_batch=lambda batch: self._on_batch(opened, batch),
            until_drained=self.trigger == AVAILABLE_NOW,
            losses=opened.losses,
        )
        writer = (
            query.output.writeStream.outputMode(self.pipeline.sink.mode)
            .queryName(self.pipeline.name)
            .option("checkpointLocation", self.workspace.storage.path(generation.path))
        )
        if self.trigger.arguments:
            writer = writer.trigger(**self.trigger.arguments)  # type: ignore[arg-type]
        with each_batch(writer, step):
            with durable("query.start"):
                running = writer.start()
            self.context.on_query(str(running.runId))
            progress = self.tally.progress = RunProgress(running, query)
            reason = self._until_it_ends(opened, running, progress, step)
        self.workspace.metastore.set_query_id(self.heartbeat.lease, generation.number, str(running.id))
        return reason

    def _until_it_ends(
        self, opened: Opened, running: StreamingQuery, progress: RunProgress, step: BatchStep
    ) -> str:
        """Return why the query ended; raise the step's error rather than Spark's wrapper."""
        try:
            return self._wait(opened, running, progress)
        except PySparkException:
            if isinstance(step.failure, StopDrain):
                return step.failure.reason
            if step.failure is not None:
                raise step.failure from None
            raise
        finally:
            self._look(progress)
            # In every case: no batch may be written after the lease is released.
            if self.context.given_up() is None:
                running.stop()
            else:
                end_stuck_query(opened.query.session, running)

    def _wait(self, opened: Opened, running: StreamingQuery, progress: RunProgress) -> str:
        """Wait until the query ends by itself; return why."""
        while not running.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
            self._look(progress)
            self._refuse_if_given_up()
        return DRAINED

    def _look(self, progress: RunProgress) -> None:
        if found := progress.look():
            self.workspace.metastore.update_run(self.context.run_id, progress=list(progress.entries))
        for entry in found:
            self.context.on_progress(entry)

    def _tell(self, verdict: PlanVerdict) -> None:
        """Log warnings and keep them in the run record: the run continued, but somebody should look."""
        notice = {"id": verdict.id, "what": verdict.what, "about": verdict.about, "do": verdict.do}
        if notice not in self.tally.notices:
            self.tally.notices.append(notice)
            self.context.on_notice(f"{verdict.id}: {verdict.what}")

    def _conclude(self, opened: Opened, stop_reason: str) -> None:
        """Finish after a slice that passed. Rewritten files are reported once: the next run compares with
        these."""
        for source, files in opened.trouble.changed.items():
            if files:
                self.workspace.metastore.note_read_files(
                    self.heartbeat.lease, opened.generation.number, source, files
                )

    def _note_listed(self, opened: Opened) -> None:
        """What was listed is read: from here on notifications tell what is new (docs/decisions/0036)."""
        past = CommittedOffsets.read(self.workspace.storage, opened.generation.checkpoint)
        behind = {
            name: replace(each.behind, read_until=(past.offset(name) or {}).get("logOffset", -1))
            for name, each in opened.trouble.arrived.items()
            if each.behind is not None
        }
        self._keep_arrivals(opened.generation, behind)

    def _keep_arrivals(self, generation: Generation, kept: Mapping[str, KeptArrivals | None]) -> None:
        found = {name: each for name, each in kept.items() if each is not None}
        if found:
            self.heartbeat.check()
            keep(generation.storage, generation.pipeline.name, generation.number, found)

    def _keep_set_aside(self, generation: Generation, trouble: FileTrouble) -> None:
        """Keep the names of files that no batch reads, before one that would have read them is committed."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        for name, found in trouble.beyond.items():
            aside = [
                SetAsideFile(
                    info.relative, info.size, info.mtime_ms, why, f"run {self.heartbeat.lease.run_id}", at
                )
                for info, why in found
                if plain_path(info.path) in trouble.unread.get(name, ())
            ]
            if aside:
                self.heartbeat.check()
                set_aside(generation.storage, generation.pipeline.name, name, aside)

    def _note_read(self, notice: dict[str, Any] | None) -> None:
        """Record which files are read alone now, see SuspectFiles."""
        notices = [*self.tally.notices, *([notice] if notice else [])]
        self.workspace.metastore.update_run(self.context.run_id, notices=notices)

    def _note_looked_at(self, generation: Generation) -> None:
        """A changed spec that fits is noted with its first batch; until one comes, no run need look again."""
        before, now = generation.fingerprint, spec_fingerprint(self.pipeline)
        if not self.tally.batches and changes(before, now):
            noted = looked_at(before, now)
            self.workspace.metastore.update_fingerprint(self.heartbeat.lease, generation.number, noted)

    def _wait_for_files(self, seconds: float) -> bool:
        self.context.on_notice(f"a file is younger than `settle`: the batch waits for {seconds:.0f} s")
        with self.context.waiting():
            return self.context.stop.wait(seconds)

    def _refuse_if_given_up(self) -> None:
        if (error := self.context.given_up()) is not None:
            raise error

    def _current_lease(self) -> Any:
        self._refuse_if_given_up()
        self.heartbeat.check()
        return self.heartbeat.lease

    def _stop_reason(self, batches: int, seconds: float) -> str | None:
        bounds = self.pipeline.drain
        if self.context.stop.is_set():
            return ASKED_TO_STOP
        if self.pipeline.finishing and batches:
            return FINISHED
        if bounds.max_batches is not None and batches >= bounds.max_batches:
            return f"bound of {counted(bounds.max_batches, 'batch')} reached"
        limit = bounds.max_duration
        if limit is not None and batches and seconds >= limit.delta.total_seconds():
            return f"bound of {limit.text} reached"
        return None

    def _on_batch(self, opened: Opened, batch: Batch) -> None:
        generation = opened.generation
        if not self.tally.batches:
            # An accepted change is recorded with its first batch, before Spark commits that batch.
            now = {**opened.fingerprint, "state.formats": state_formats(generation.files, batch.batch_id)}
            if now != generation.fingerprint:
                self.workspace.metastore.update_fingerprint(self.heartbeat.lease, generation.number, now)
        # Spark starts a batch only after committing the one before.
        self.tally.committed = batch.batch_id - 1
        self.tally.batches.append(batch)
        self.context.on_batch(batch)

    def _left(self, stop_reason: str) -> str:
        """Return what a drain that stopped at its bound leaves to the next run; empty when nothing is
        left."""
        if stop_reason == DRAINED:
            return ""
        left = waiting_text(preflight(self.workspace, self.pipeline).backlog)
        return f"; left for the next run: {left}" if left else ""

    # 9 and 10

    def _judge(self, opened: Opened) -> Verdict:
        """Audit the committed batches that no audit has judged, and publish those that passed."""
        generation, tally = opened.generation, self.tally
        if (last := generation.files.last_commit_batch()) is not None:
            tally.committed = last
            with durable("commits.note"):
                self.workspace.metastore.mark_committed(self.heartbeat.lease, generation.number, last)
        with tally.timed("audit"):
            verdict = opened.slice.audit(self.context.run_id)
        # A watch judges many slices: its record shows the last one with rows, and the total of visible rows.
        if verdict.outcome != "empty" or "verdict" not in tally.outcome:
            tally.outcome["verdict"] = verdict.outcome
        with tally.timed("publish"):
            rows = opened.slice.publish()
        tally.published += rows
        self.context.on_verdict(verdict, rows)
        for notice in tell_commit_groups(generation):
            if notice not in tally.notices:
                tally.notices.append(notice)
                self.context.on_notice(f"{notice['id']}: {notice['what']}")
        return verdict

    # 11

    def fail(self, error: DrawdownError) -> None:
        """Close the run record with an error."""
        files = self.tally.batch_files
        if files is not None and (isinstance(error, TransformError) or error.id in _ABOUT_FILES):
            # The error asked for the data to be fixed, so a corrected file is not reported as rewritten.
            with suppress(DrawdownError):
                files.let_be_changed(self.heartbeat.lease)
        try:
            self.finish("failed", error=error.as_dict())
        except SourceError:
            # The storage that ended the run does not say how far it came either.
            self.abandon(error)

    def abandon(self, error: DrawdownError) -> None:
        """Close the run record using only what is in memory: storage may fail, or hang with the run's thread,
        and the caller must not."""
        self._close("failed", self.tally.committed, error=error.as_dict())

    def finish(self, state: RunState, **values: Any) -> Run:
        """Close the run record with what is known so far."""
        generation, staging = self.tally.generation, self.tally.staging
        committed = generation.files.last_commit_batch() if generation is not None else None
        if staging is not None and self.context.given_up() is None:
            staging.end(self.heartbeat.lease)
        if generation is not None and committed is not None:
            millis = generation.files.commit(committed).get("nextBatchWatermarkMs", 0)
            values["watermark"] = EPOCH + timedelta(milliseconds=millis) if millis > 0 else None
        return self._close(state, committed, **values)

    def _close(self, state: RunState, committed: int | None, **values: Any) -> Run:
        tally = self.tally
        checkpoint = tally.generation.checkpoint if tally.generation is not None else None
        batches, counts = tally.counts(committed)
        with durable("run.close"):
            return self.workspace.metastore.finish_run(
                self.context.run_id,
                state,
                generation=checkpoint.generation if checkpoint else None,
                batches=batches,
                counts=counts,
                progress=list(tally.progress.entries) if tally.progress else [],
                notices=tally.notices,
                phases=dict(tally.phases),
                **tally.outcome,
                **values,
            )
