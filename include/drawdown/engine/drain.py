"""A drain: one run against the live checkpoint, until its backlog is empty or its bound is reached.

 1  load and validate the spec (the caller has done it: a Pipeline is valid)
 2  take the lease
 3  open the checkpoint's generation and plan (planning.py): refuse, or go on
 4  settle the past: Spark's commit log is the truth; changes that dead runs left open are closed, the runs
    marked; begin a change of its own, with the place where its files go
 5  note the end: what the sources hold now is the backlog that progress is measured against
 6  start the query in a session of its own
 7  per batch: check the lease, stage, count, note (batch.py)
 8  stop when drained, at the bound, or when asked: before the next batch writes
 9  audit the slice: every committed batch that nobody has judged, of earlier runs too
10  publish or hold
11  write the run record
12  release the lease

A crash at any point, then a new run, gives the rows of a run that never crashed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from drawdown.engine.batch import EPOCH, BatchStep, StopDrain
from drawdown.engine.batch_files import BatchFiles
from drawdown.engine.batch_function import each_batch
from drawdown.engine.carriers import write_carriers
from drawdown.engine.failures import UNEXPECTED, of_run
from drawdown.engine.fed_again import plan_their_batch
from drawdown.engine.jobs import end_stuck_query
from drawdown.engine.listener import listener_of, listening
from drawdown.engine.planning import plan_pipeline
from drawdown.engine.progress import RunProgress
from drawdown.engine.query import Query
from drawdown.engine.rejects import QUARANTINE_SCHEMA
from drawdown.engine.run_context import RunContext
from drawdown.engine.session import reading_session
from drawdown.engine.settle import clean_up_crashed_runs, settle
from drawdown.engine.sinks import DeltaSink, Sink, sink_for
from drawdown.engine.slice import Auditor, SliceDesk, not_passed
from drawdown.engine.sources.inference import keep_schemas
from drawdown.engine.staging import Staging
from drawdown.engine.versions import state_formats
from drawdown.errors import DrawdownError, TransformError
from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.lease_keeper import LeaseKeeper
from drawdown.metastore.records import Batch, Checkpoint, Counts, Run, RunState, Verdict
from drawdown.plan.findings import waiting_text
from drawdown.plan.preflight import preflight
from drawdown.plan.verdicts import PlanVerdict
from drawdown.spec import Pipeline, Project
from drawdown.spec.trigger import AVAILABLE_NOW, Trigger
from drawdown.storage import Storage

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0
DRAINED = "drained"
ASKED_TO_STOP = "asked to stop"


def drain(
    root: SparkSession,
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    auditor: Auditor,
    context: RunContext,
) -> Run:
    """Drain one pipeline; the steps are this module's page.

    Returns:
        The finished run record, with verdict pass, warn or empty.

    Raises:
        BusyError: another run holds the lease.
        RefusedError, SpecError, SourceError, TransformError: nothing of the failed batch is visible.
        AuditFailed: the slice was judged fail or error; it is not published.
        what ``context.given_up`` says: the run was ended in the middle of a step.
    """
    return under_lease(
        lambda keeper: Drain(root, project, pipeline, metastore, auditor, context, keeper),
        context.record(pipeline.name),
        project,
        pipeline,
        metastore,
    )


def under_lease(
    make: Callable[[LeaseKeeper], Drain],
    record: Run,
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
) -> Run:
    """Take the lease, open the run record, do the work, close both whatever happens. Raises as `drain`."""
    ttl = project.lease_ttl.delta
    with durable("lease.take"):
        lease = metastore.acquire(pipeline.name, record.holder, record.run_id, ttl)
    with LeaseKeeper(metastore, lease, ttl) as keeper:
        with durable("run.open"):
            metastore.start_run(record)
        work = make(keeper)
        work.context.on_open(work.fail)
        try:
            return work.run()
        except Exception as cause:  # the record must not stay `running` whatever happens
            log.debug("run %s ended with", record.run_id, exc_info=True)
            error = work.context.given_up() or of_run(work.root, project, pipeline, metastore, cause)
            work.fail(error)
            raise error from (cause if error.id == UNEXPECTED else None)


@dataclass
class Drain:
    """One run over the live checkpoint; what a watch does otherwise (watch.py) are its overridden parts."""

    root: SparkSession
    project: Project
    pipeline: Pipeline
    metastore: Metastore
    auditor: Auditor
    context: RunContext
    keeper: LeaseKeeper
    trigger: Trigger = AVAILABLE_NOW

    def __post_init__(self) -> None:
        self.storage = Storage(self.project.storage_root)
        self.sink: Sink = sink_for(self.project, self.pipeline, self.metastore)
        self.quarantine = DeltaSink.quarantine(self.project, self.pipeline)
        self.checkpoint: Checkpoint | None = None
        self.outcome: dict[str, Any] = {}
        self.published = 0
        self.batches: list[Batch] = []
        self.progress: RunProgress | None = None
        self.noted = False
        self.notices: list[dict[str, Any]] = []
        self.batch_files: BatchFiles | None = None
        self.staging: Staging | None = None

    def run(self) -> Run:
        query = self._open()
        assert self.checkpoint is not None
        of = self.project, self.pipeline, self.metastore, self.auditor, self.checkpoint
        self.desk = SliceDesk(*of, self.sink, query, self._current_lease)
        with listening(query.session, listener_of(self.pipeline), self.context.on_notice):
            stop_reason = self._drain(query)
        if (verdict := self._judge()).outcome in ("fail", "error"):
            raise not_passed(self.pipeline, verdict)
        self._conclude()
        self.notices += self.desk.mind_terms(self.context.on_notice)
        return self.finish(
            "stopped" if stop_reason == ASKED_TO_STOP else "succeeded",
            stop_reason=f"{stop_reason}{self._left(stop_reason)}{self.desk.waiting()}",
        )

    # 3 and 4

    def _open(self) -> Query:
        plan = plan_pipeline(self.root, self.project, self.pipeline, self.metastore, self.trigger)
        query = plan.accepted()
        # Not before: of a checkpoint that is refused, nothing can be told at the end.
        self.files = plan.files
        self.losses, self.trouble = plan.losses, plan.trouble
        self.notices += plan.losses.notices()
        for verdict in plan.trouble.verdicts:
            self._tell(verdict)
        found = plan.checkpoint
        keep_schemas(self.storage, self.pipeline, plan.generation, query.inferred)
        if found is not None:
            settle(self.metastore, self.keeper.lease, self.storage, self.pipeline, found, self.files)
        identity = self.sink.bind(self.sink.declared_schema() or query.schema, found)
        self.quarantine.bind(QUARANTINE_SCHEMA, found)
        self.fingerprint = {**plan.fingerprint, "sink.identity": identity}
        with durable("checkpoint.note"):
            self.checkpoint = found or self.metastore.create_checkpoint(
                self.keeper.lease, plan.generation, plan.path, self.fingerprint
            )
        with durable("past.settle"):
            clean_up_crashed_runs(
                self.metastore, self.keeper.lease, self.project, self.pipeline, self.checkpoint, self.sink
            )
        committed = self.files.last_commit_batch()
        self.staging = Staging.begin(
            self.metastore,
            self.keeper.lease,
            self.checkpoint,
            [self.quarantine, self.sink],
            first_batch=0 if committed is None else committed + 1,
        )
        return query

    # 5 to 8

    def _drain(self, query: Query) -> str:
        assert self.checkpoint is not None
        maxima = self.metastore.maxima(self.pipeline.name, self.checkpoint.generation)
        write_carriers(self.storage, self.pipeline, self.checkpoint.generation, self.context.run_id, maxima)
        plan_their_batch(self.storage, self.files, self.checkpoint, query.replays)
        self.batch_files = BatchFiles(
            self.pipeline,
            self.storage,
            self.metastore,
            self.checkpoint,
            self.files,
            query.source_order,
            self.trouble,
            wait=self.context.stop.wait,
            tell=self._tell,
        )
        step = BatchStep(
            self.project,
            self.pipeline,
            self.metastore,
            self.checkpoint,
            self.files,
            query,
            self.sink,
            self.quarantine,
            reading_session(self.root),
            self.batch_files,
            lease=self._current_lease,
            stop_reason=self._stop_reason,
            on_batch=self._on_batch,
            until_drained=self.trigger == AVAILABLE_NOW,
            losses=self.losses,
        )
        self.started = time.monotonic()
        writer = (
            query.output.writeStream.outputMode(self.pipeline.sink.mode)
            .queryName(self.pipeline.name)
            .option("checkpointLocation", self.storage.path(self.checkpoint.path))
        )
        if self.trigger.arguments:
            writer = writer.trigger(**self.trigger.arguments)  # type: ignore[arg-type]
        with each_batch(writer, step):
            with durable("query.start"):
                running = writer.start()
            self.context.on_query(str(running.runId))
            self.progress = RunProgress(running, query.source_order)
            reason = self._until_it_ends(query.session, running, self.progress, step)
        self.metastore.set_query_id(self.keeper.lease, self.checkpoint.generation, str(running.id))
        return reason

    def _until_it_ends(
        self, session: SparkSession, running: StreamingQuery, progress: RunProgress, step: BatchStep
    ) -> str:
        """Why it did; raises what the step raised rather than what Spark made of it."""
        try:
            return self._wait(running, progress)
        except PySparkException:
            if isinstance(step.failure, StopDrain):
                return step.failure.reason
            if step.failure is not None:
                raise step.failure from None
            raise
        finally:
            self._look(progress)
            # Whatever ended the wait: no batch may be written after the lease is given back.
            if self.context.given_up() is None:
                running.stop()
            else:
                end_stuck_query(session, running)

    def _wait(self, running: StreamingQuery, progress: RunProgress) -> str:
        """Until the query ends by itself; returns why it did."""
        while not running.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
            self._look(progress)
            self._refuse_if_given_up()
        return DRAINED

    def _look(self, progress: RunProgress) -> None:
        if found := progress.look():
            self.metastore.update_run(self.context.run_id, progress=list(progress.entries))
        for entry in found:
            self.context.on_progress(entry)

    def _tell(self, verdict: PlanVerdict) -> None:
        """What the run goes on with and a person should know: said now, and kept in the run record."""
        notice = {"id": verdict.id, "what": verdict.what, "about": verdict.about, "do": verdict.do}
        if notice not in self.notices:
            self.notices.append(notice)
            self.context.on_notice(f"{verdict.id}: {verdict.what}")

    def _conclude(self) -> None:
        """After a slice that passed. Rewritten files are said once: the next run compares with these."""
        assert self.checkpoint is not None
        for source, files in self.trouble.changed.items():
            if files:
                self.metastore.note_read_files(self.keeper.lease, self.checkpoint.generation, source, files)

    def _refuse_if_given_up(self) -> None:
        if (error := self.context.given_up()) is not None:
            raise error

    def _current_lease(self) -> Any:
        self._refuse_if_given_up()
        self.keeper.check()
        return self.keeper.lease

    def _stop_reason(self, batches: int) -> str | None:
        bounds = self.pipeline.drain
        if self.context.stop.is_set():
            return ASKED_TO_STOP
        if bounds.max_batches is not None and batches >= bounds.max_batches:
            return f"bound of {bounds.max_batches} batches reached"
        limit = bounds.max_duration
        if limit is not None and batches and time.monotonic() - self.started >= limit.delta.total_seconds():
            return f"bound of {limit.text} reached"
        return None

    def _on_batch(self, batch: Batch) -> None:
        self._note_fingerprint(batch)
        self.batches.append(batch)
        self.context.on_batch(batch)

    def _left(self, stop_reason: str) -> str:
        """What a drain that ended before its backlog leaves to the next; the bound may be just met."""
        if stop_reason == DRAINED:
            return ""
        left = waiting_text(preflight(self.project, self.pipeline, self.metastore).backlog)
        return f"; left for the next run: {left}" if left else ""

    def _note_fingerprint(self, batch: Batch) -> None:
        """An allowed change is noted with the first batch under it, before Spark commits that."""
        assert self.checkpoint is not None
        if self.noted:
            return
        now = {**self.fingerprint, "state.formats": state_formats(self.files, batch.batch_id)}
        if now != self.checkpoint.fingerprint:
            self.metastore.update_fingerprint(self.keeper.lease, self.checkpoint.generation, now)
        self.noted = True

    def _settle_commits(self) -> None:
        assert self.checkpoint is not None
        if (last := self.files.last_commit_batch()) is not None:
            with durable("commits.note"):
                self.metastore.mark_committed(self.keeper.lease, self.checkpoint.generation, last)

    # 9 and 10

    def _judge(self) -> Verdict:
        """Audit what is committed and not judged, and publish what has passed."""
        self._settle_commits()
        verdict = self.desk.audit(self.context.run_id)
        # A watch judges many slices: its record shows the last one that had rows, and all that is visible.
        if verdict.outcome != "empty" or "verdict" not in self.outcome:
            self.outcome["verdict"] = verdict.outcome
        rows = self.desk.publish()
        self.published += rows
        self.context.on_verdict(verdict, rows)
        return verdict

    # 11

    def fail(self, error: DrawdownError) -> None:
        """Close the run record with an error."""
        if self.batch_files is not None and (
            isinstance(error, TransformError) or error.id == "source.malformed"
        ):
            # The error asks for the data to be mended: a mended file is not a lie.
            with suppress(DrawdownError):
                self.batch_files.let_be_mended(self.keeper.lease)
        self.finish("failed", error=error.as_dict())

    def finish(self, state: RunState, **values: Any) -> Run:
        """Close the run record with what is known by now."""
        committed = self.files.last_commit_batch() if hasattr(self, "files") else None
        done = [b for b in self.batches if committed is not None and b.batch_id <= committed]
        counts = replace(
            sum((b.counts for b in done), Counts()),
            late_groups=self.progress.late_groups if self.progress else 0,
            duplicates=self.progress.duplicates if self.progress else 0,
            published=self.published,
        )
        if self.staging is not None and self.context.given_up() is None:
            self.staging.end(self.storage, self.keeper.lease)
        watermark = None
        if committed is not None:
            millis = self.files.commit(committed).get("nextBatchWatermarkMs", 0)
            watermark = EPOCH + timedelta(milliseconds=millis) if millis > 0 else None
        with durable("run.close"):
            return self.metastore.finish_run(
                self.context.run_id,
                state,
                generation=self.checkpoint.generation if self.checkpoint else None,
                batches=len(done),
                counts=counts,
                watermark=watermark,
                progress=list(self.progress.entries) if self.progress else [],
                notices=self.notices,
                **self.outcome,
                **values,
            )
