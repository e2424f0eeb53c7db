"""A drain: one run against the live checkpoint, until its backlog is empty or its bound is reached.

 1  load and validate the spec (the caller has done it: a Pipeline is valid)
 2  take the lease
 3  open the checkpoint's generation and plan (planning.py): refuse, or go on
 4  settle the past: Spark's commit log is the truth; dead runs are marked, their leftovers swept
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
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from drawdown.engine.batch import EPOCH, BatchStep, StopDrain
from drawdown.engine.carriers import write_carriers
from drawdown.engine.failures import from_spark, unexpected
from drawdown.engine.lease_keeper import LeaseKeeper
from drawdown.engine.planning import plan_pipeline
from drawdown.engine.progress import RunProgress
from drawdown.engine.query import Query
from drawdown.engine.rejects import QUARANTINE_SCHEMA
from drawdown.engine.session import reading_session
from drawdown.engine.settle import bury_dead_runs, settle
from drawdown.engine.sinks import DeltaSink, Sink, sink_for
from drawdown.errors import AuditFailed, DrawdownError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Checkpoint, Counts, Run, RunState, Verdict
from drawdown.publishing import publish_passed, publish_quarantine
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage

log = logging.getLogger(__name__)

_POLL_SECONDS = 1.0


class AuditOutcome(Protocol):
    """What an auditor says of a slice; see drawdown.quality."""

    @property
    def outcome(self) -> Any: ...
    @property
    def results(self) -> list[dict[str, Any]]: ...
    @property
    def text(self) -> str: ...


Auditor = Callable[[DataFrame, Pipeline, int], AuditOutcome]


@dataclass(frozen=True)
class RunContext:
    """Who runs, and how to reach the caller.

    Attributes:
        origin: what is kept in the run record: dag_id, dag_run_id, try_number ..., or the command.
        stop: set from outside to stop before the next batch writes.
        on_batch: called after each batch is noted, before Spark commits it.
    """

    run_id: str
    holder: str
    origin: Mapping[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    on_batch: Callable[[Batch], None] = lambda batch: None


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
    """
    lease = metastore.acquire(pipeline.name, context.holder, context.run_id, project.lease_ttl.delta)
    with LeaseKeeper(metastore, lease, project.lease_ttl.delta) as keeper:
        metastore.start_run(
            Run(context.run_id, pipeline.name, holder=context.holder, origin=dict(context.origin))
        )
        work = _Drain(root, project, pipeline, metastore, auditor, context, keeper)
        try:
            return work.run()
        except DrawdownError as error:
            work.finish("failed", error=error.as_dict())
            raise
        except (PySparkException, Py4JJavaError) as cause:
            known = from_spark(pipeline, cause)
            work.finish("failed", error=known.as_dict())
            raise known from None
        except Exception as bug:  # the record must not stay `running` whatever happens
            log.debug("unexpected failure of run %s", context.run_id, exc_info=True)
            unknown = unexpected(pipeline, bug)
            work.finish("failed", error=unknown.as_dict())
            raise unknown from bug


@dataclass
class _Drain:
    root: SparkSession
    project: Project
    pipeline: Pipeline
    metastore: Metastore
    auditor: Auditor
    context: RunContext
    keeper: LeaseKeeper

    def __post_init__(self) -> None:
        self.storage = Storage(self.project.storage_root)
        self.sink: Sink = sink_for(self.project, self.pipeline, self.metastore)
        self.quarantine = DeltaSink.quarantine(self.project, self.pipeline)
        self.checkpoint: Checkpoint | None = None
        self.outcome: dict[str, Any] = {}
        self.published = 0
        self.batches: list[Batch] = []
        self.progress: RunProgress | None = None

    def run(self) -> Run:
        query = self._open()
        stop_reason = self._drain(query)
        self._settle_commits()
        verdict = self._audit(query)
        self._publish()
        if verdict.outcome in ("fail", "error"):
            raise _not_passed(self.pipeline, verdict)
        return self.finish(
            "stopped" if stop_reason == "asked to stop" else "succeeded",
            stop_reason=f"{stop_reason}{self._waiting()}",
        )

    # 3 and 4

    def _open(self) -> Query:
        plan = plan_pipeline(self.root, self.project, self.pipeline, self.metastore)
        self.files = plan.files
        query = plan.accepted()
        found = plan.checkpoint
        if found is not None:
            settle(self.metastore, self.keeper.lease, self.storage, self.pipeline, found, self.files)
        identity = self.sink.bind(self.sink.declared_schema() or query.schema, found)
        self.quarantine.bind(QUARANTINE_SCHEMA, found)
        self.fingerprint = {**plan.fingerprint, "sink.identity": identity}
        self.checkpoint = found or self.metastore.create_checkpoint(
            self.keeper.lease, plan.generation, plan.path, self.fingerprint
        )
        sinks: list[Sink] = [self.sink, self.quarantine]
        bury_dead_runs(self.metastore, self.keeper.lease, self.storage, self.pipeline, self.checkpoint, sinks)
        return query

    # 5 to 8

    def _drain(self, query: Query) -> str:
        assert self.checkpoint is not None
        maxima = self.metastore.maxima(self.pipeline.name, self.checkpoint.generation)
        write_carriers(self.storage, self.pipeline, self.checkpoint.generation, self.context.run_id, maxima)
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
            lease=self._current_lease,
            stop_reason=self._stop_reason,
            on_batch=self._on_batch,
        )
        self.started = time.monotonic()
        running = (
            query.output.writeStream.outputMode(self.pipeline.sink.mode)
            .queryName(self.pipeline.name)
            .trigger(availableNow=True)
            .option("checkpointLocation", self.storage.path(self.checkpoint.path))
            .foreachBatch(step)
            .start()
        )
        self.progress = RunProgress(running, query.source_order)
        try:
            while not running.awaitTermination(_POLL_SECONDS):  # type: ignore[arg-type]
                if self.progress.look():
                    self.metastore.update_run(self.context.run_id, progress=list(self.progress.entries))
        except PySparkException:
            if isinstance(step.failure, StopDrain):
                return step.failure.reason
            if step.failure is not None:
                raise step.failure from None
            raise
        finally:
            self.progress.look()
            # Whatever ended the wait: no batch may be written after the lease is given back.
            running.stop()
        self.metastore.set_query_id(self.keeper.lease, self.checkpoint.generation, str(running.id))
        return "drained"

    def _current_lease(self) -> Any:
        self.keeper.check()
        return self.keeper.lease

    def _stop_reason(self, batches: int) -> str | None:
        bounds = self.pipeline.drain
        if self.context.stop.is_set():
            return "asked to stop"
        if bounds.max_batches is not None and batches >= bounds.max_batches:
            return f"bound of {bounds.max_batches} batches reached"
        limit = bounds.max_duration
        if limit is not None and batches and time.monotonic() - self.started >= limit.delta.total_seconds():
            return f"bound of {limit.text} reached"
        return None

    def _on_batch(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.context.on_batch(batch)

    def _settle_commits(self) -> None:
        assert self.checkpoint is not None
        last = self.files.last_commit_batch()
        if last is not None:
            self.metastore.mark_committed(self.keeper.lease, self.checkpoint.generation, last)

    # 9 and 10

    def _audit(self, query: Query) -> Verdict:
        """Judge every committed batch that nobody has judged."""
        assert self.checkpoint is not None
        generation = self.checkpoint.generation
        slice_ = self.metastore.batches(self.pipeline.name, generation, statuses=("committed",))
        ids = [batch.batch_id for batch in slice_]
        # In complete mode each batch stages the whole result, and the last one is what would be published.
        judged = slice_[-1:] if self.pipeline.sink.mode == "complete" else slice_
        rows = sum(batch.counts.staged for batch in judged)
        files = self.metastore.staged_files(
            self.pipeline.name, generation, [batch.batch_id for batch in judged], table="output"
        )
        frame = self.sink.rows_of(query.session, query.schema, files)
        said = self.auditor(frame, self.pipeline, rows)
        verdict = Verdict(
            self.pipeline.name,
            generation,
            self.context.run_id,
            first_batch=min(ids, default=-1),
            last_batch=max(ids, default=-1),
            outcome=said.outcome,
            results=said.results,
            text=said.text,
        )
        self.outcome["verdict"] = verdict.outcome
        if ids:
            publish_quarantine(self.metastore, self.keeper.lease, self.project, self.pipeline, slice_)
            self.metastore.record_verdict(self.keeper.lease, verdict)
        return verdict

    def _publish(self) -> None:
        assert self.checkpoint is not None
        published = publish_passed(
            self.metastore, self.keeper.lease, self.project, self.pipeline, self.checkpoint
        )
        self.published = published.rows

    def _waiting(self) -> str:
        """What passed and is not published, because a batch before it is held."""
        assert self.checkpoint is not None
        of = self.pipeline.name, self.checkpoint.generation
        waiting = self.metastore.batches(*of, statuses=("passed",))
        if not waiting:
            return ""
        rows = sum(batch.counts.staged for batch in waiting)
        held = self.metastore.batches(*of, statuses=("held",))[0].batch_id
        return (
            f"; {rows:,} row(s) that passed wait behind held batch {held}:"
            f" `drawdown release {self.pipeline.name}` or `drawdown discard {self.pipeline.name}`"
        )

    # 11

    def finish(self, state: RunState, **values: Any) -> Run:
        """Close the run record with what is known by now."""
        committed = self.files.last_commit_batch() if hasattr(self, "files") else None
        done = [b for b in self.batches if committed is not None and b.batch_id <= committed]
        counts = replace(
            sum((b.counts for b in done), Counts()),
            late_groups=self.progress.late_groups if self.progress else 0,
            published=self.published,
        )
        watermark = None
        if committed is not None:
            millis = self.files.commit(committed).get("nextBatchWatermarkMs", 0)
            watermark = EPOCH + timedelta(milliseconds=millis) if millis > 0 else None
        return self.metastore.finish_run(
            self.context.run_id,
            state,
            generation=self.checkpoint.generation if self.checkpoint else None,
            batches=len(done),
            counts=counts,
            watermark=watermark,
            progress=list(self.progress.entries) if self.progress else [],
            **self.outcome,
            **values,
        )


def _not_passed(pipeline: Pipeline, verdict: Verdict) -> AuditFailed:
    if pipeline.sink.publish == "direct":
        state, do = "is visible already (publish: direct)", "mend the data; later runs are judged anew"
    elif verdict.outcome == "fail":
        state = "is not published"
        do = f"`drawdown release {pipeline.name}` publishes the held rows as they are, `discard` drops them"
    else:
        state, do = "is not published", "mend the expectation; the next run audits the same rows again"
    return AuditFailed(
        f"audit.{verdict.outcome}",
        f"the slice of {pipeline.name} {state}: {verdict.text}",
        where=f"batches {verdict.first_batch} to {verdict.last_batch}",
        do=do,
    )
