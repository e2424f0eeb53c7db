"""What a drain does with each micro-batch, inside foreachBatch and before Spark commits it.

 a  stop, with nothing written: on request, at the bound, when only a timer caused the batch, when the lease
    is lost, or when a file of the batch is missing or has changed (spark_batch_files.py)
 b  remove what an earlier attempt at this batch staged
 c  stage the rows: the one action that executes the batch. A sink without staging receives them here for
    good, so rows that must end the run are looked for first, in a separate read, and the batch is noted as
    begun: an attempt that finishes it judges its rows as this one did (plan/begun_batch.py)
 d  read the counts that this execution collected at the source boundaries
 e  fetch and stage the rejected rows, and count late rows, if step d found any
 f  note batch, files, offsets, counts and maxima in one fenced transaction
 g  direct publishing: make the batch visible
Spark writes its commit log after this returns. A crash anywhere replays the batch from a.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from drawdown.errors import DrawdownError
from drawdown.fault_points import durable
from drawdown.kinds import code_at
from drawdown.metastore.records import Batch, Counts, Lease, QuarantineDecision, StagedFile
from drawdown.publishing import publish_batch
from drawdown.query.query import Query
from drawdown.rows.quarantine_staging import JudgedBatch, stage_rejected
from drawdown.rows.refused import refuse_rows
from drawdown.rows.row_fates import BatchPlan, Observed
from drawdown.sinks.delta.stage import DeltaSink
from drawdown.sinks.stage import SelfStagingSink, SinkStage
from drawdown.sources.files.spark_batch_files import BatchFiles
from drawdown.sources.kafka.spark_losses import Losses, lost_offsets
from drawdown.sources.registry import SOURCES
from drawdown.storage import Storage
from drawdown.values.interval import EPOCH
from drawdown.workspace import Generation


class StopDrain(Exception):
    """Raised inside foreachBatch to end a drain before a batch writes; the batch is replayed next time."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class BatchStep:
    """Runs steps a to g for each batch of one run.

    Attributes:
        lease: returns the current lease; raises when it is lost.
        stop_reason: takes the number of data batches so far; returns why to stop, or None.
        until_drained: whether to stop also when no work is left, see `_idle`.
        failure: the first error raised here; Spark would wrap it in a Java exception.
    """

    generation: Generation
    query: Query
    sink: SinkStage
    quarantine: DeltaSink
    reading: SparkSession
    batch_files: BatchFiles
    lease: Callable[[], Lease]
    stop_reason: Callable[[int], str | None]
    on_batch: Callable[[Batch], None]
    until_drained: bool = True
    losses: Losses = field(default_factory=Losses)
    batches: list[Batch] = field(default_factory=list)
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self.pipeline, self.files = self.generation.pipeline, self.generation.files
        planned = self.files.last_offset_batch()
        self.planned_before = -1 if planned is None else planned

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """The function given to foreachBatch."""
        try:
            with durable("batch.end"):
                self._run(frame, batch_id)
        except BaseException as failure:
            self.failure = self.failure or failure
            raise

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        before, now = self._offsets(batch_id - 1), self._offsets(batch_id)
        has_data = before != now
        # A batch without data only emits what the batch before it closed, so it is not counted separately.
        replays = [each for each in self.query.replays if each.batch_id == batch_id]
        counted = has_data or bool(replays)
        reason = self.stop_reason(len(self.batches)) if counted else self._idle(batch_id)
        if reason is not None:
            raise StopDrain(reason)
        lease = self.lease()
        reason = self.batch_files.look(lease, before, now, replayed=batch_id <= self.planned_before)
        if reason is not None:
            raise StopDrain(reason)
        if self._committed_before(batch_id):
            # Spark's commit entry for this batch was lost. Executing it again restores state and watermark;
            # its rows are already in place.
            frame.write.format("noop").mode("overwrite").save()
            return
        visible = self._settle_earlier_attempt(lease, batch_id)
        plan = BatchPlan(self._java_execution(), self.reading)
        if has_data and not self.pipeline.sink.staged:
            self._judge_before_delivery(plan)

        # If readers already see the batch, nothing is written and the recorded files are kept.
        with self._begun(lease, batch_id), durable("batch.stage"):
            output = self.sink.write(frame, self.generation.number, batch_id) or visible
        metrics = plan.metrics()
        observed = {name: self._observed(plan, metrics, name, has_data) for name in self.query.boundaries}
        refuse_rows(self.pipeline, self.query.boundaries, observed)
        late = {name: self._late(plan, name, seen, batch_id) for name, seen in observed.items()}
        with durable("batch.reject"):
            judged = JudgedBatch(
                plan,
                self.query.boundaries,
                observed,
                late,
                watermark=self._judged_by(batch_id),
                generation=self.generation.number,
                batch_id=batch_id,
                run_id=lease.run_id,
                planned_at=EPOCH + timedelta(milliseconds=self.files.offsets(batch_id).planned_ms),
            )
            rejected = stage_rejected(judged, self.quarantine)
        passed = {n: self.losses.note(n, *self._moved(n, before, now)) for n in observed}
        maxima = _maxima(observed, replays)
        until_now = self._until_now(maxima)

        output_rows = plan.output_rows()
        staged = output_rows if output_rows is not None else sum(file.rows for file in output)
        batch = Batch(
            pipeline=self.pipeline.name,
            generation=self.generation.number,
            batch_id=batch_id,
            run_id=lease.run_id,
            epoch=lease.epoch,
            offsets_from=before,
            offsets_to=now,
            watermark=self._judged_by(batch_id),
            counts=sum(
                (seen.counts(late[n]) for n, seen in observed.items()),
                Counts(staged=staged, sessionless=plan.sessionless(), lost=lost_offsets(passed.values()))
                + _replayed(replays),
            ),
            by_source={
                n: {
                    **_by_source(seen, late[n]),
                    **self.batch_files.amounts.get(n, {}),
                    **until_now.get(n, {}),
                    **passed[n],
                    **self._position(n, self._moved(n, before, now)[1]),
                }
                for n, seen in observed.items()
            },
            treatment=self.pipeline.sink.treatment,
        )
        with durable("batch.note"):
            # Check the lease again: staging may have taken so long that the run was cancelled.
            self.generation.metastore.note_batch(self.lease(), batch, [*output, *rejected], maxima)
        if self.pipeline.sink.publish == "direct":
            publish_batch(self.generation.workspace, lease, self.pipeline, batch)
        if counted:
            self.batches.append(batch)
        self.on_batch(batch)

    @contextmanager
    def _begun(self, lease: Lease, batch_id: int) -> Iterator[None]:
        """Note that the sink may hold rows of the batch, if it cannot say so itself: which ones is fixed now.

        A sink that refuses the batch has none that count, so that a new rule may keep the cause away from it.
        """
        if self.pipeline.sink.staged:
            yield
            return
        note, generation = self.generation.metastore.note_begun, self.generation.number
        note(lease, generation, batch_id)
        try:
            yield
        except Exception:
            # Not of a run that was cancelled: its sink may have gone on.
            with suppress(DrawdownError):
                note(self.lease(), generation, None)
            raise

    def _judge_before_delivery(self, plan: BatchPlan) -> None:
        """Raise like `refuse_rows`, before the sink receives any row of the batch."""
        strict = {name: each for name, each in self.query.boundaries.items() if each.may_end_a_run}
        observed = {name: each.count(plan.source_frame(name)) for name, each in strict.items()}
        refuse_rows(self.pipeline, strict, observed)

    def _idle(self, batch_id: int) -> str | None:
        """Return ``drained`` when the batch has no data and its watermark equals that of this run's previous
        batch.

        Spark plans such batches forever where an operator has processing-time timeouts, timers or a time
        to live (shouldRunAnotherBatch of FlatMapGroupsInPandasWithStateExec and TransformWithStateExec), and
        Available-now would never end. Timers that were due fired in the previous batch. This batch stays
        planned: the next run repeats it with its planned time, then plans one with the current time, so that
        timers fire even without new data.
        """
        if not self.until_drained or batch_id - 1 <= self.planned_before:
            return None
        before, now = self.files.offsets(batch_id - 1), self.files.offsets(batch_id)
        return "drained" if before.watermark_ms == now.watermark_ms else None

    def _moved(self, name: str, before: Sequence[Any], now: Sequence[Any]) -> tuple[Any, Any]:
        """The offsets of one source before and after the batch."""
        number = self.query.source_order.index(name)
        return (before[number] if before else None), now[number]

    def _offsets(self, batch_id: int) -> list[Any]:
        return list(self.files.offsets(batch_id).offsets) if batch_id >= 0 else []

    def _committed_before(self, batch_id: int) -> bool:
        """Whether Spark has committed this batch before: only then is its status beyond `staged`."""
        noted = self.generation.batch(batch_id)
        return noted is not None and noted.status != "staged"

    def _settle_earlier_attempt(self, lease: Lease, batch_id: int) -> list[StagedFile]:
        """Remove the files of an attempt that recorded them and died before Spark's commit.

        What a sink without a fence has of a batch that no earlier attempt can have planned goes as well.

        The lookup checks the lease: a run that stalled and lost it would remove its successor's files.

        Returns:
            The output files that readers already see; these are kept. Else an empty list.
        """
        generation = self.generation.number
        with self.generation.metastore.fenced(lease):
            noted = self.generation.batch(batch_id)
            files = self.generation.staged_files([batch_id])
        if batch_id > self.planned_before and isinstance(self.sink, SelfStagingSink):
            self.sink.forget(batch_id)
        if noted is None or noted.status != "staged":
            return []
        # Outside the lock: the files belong to an older attempt, and no newer attempt uses them.
        output = [file for _, file in files if file.table == "output"]
        self.quarantine.remove([file for _, file in files if file.table == "quarantine"])
        if self.sink.holds(generation, batch_id):
            return output
        self.sink.remove(output)
        return []

    def _java_execution(self) -> Any:
        """Return the IncrementalExecution of the current batch; the session runs only this query."""
        return self.query.session._jsparkSession.streams().active()[0].streamingQuery().lastExecution()

    def _observed(self, plan: BatchPlan, metrics: Mapping[str, Any], name: str, has_data: bool) -> Observed:
        boundary = self.query.boundaries[name]
        if name in metrics and not self.query.stops_early:
            return boundary.observed(metrics)
        # The optimiser dropped this branch (a join with an empty table) or a LIMIT ended the read early:
        # count the source separately.
        if not has_data:
            return Observed.nothing([rule.name for rule in boundary.rules])
        return boundary.count(plan.source_frame(name))

    def _late(self, plan: BatchPlan, name: str, seen: Observed, batch_id: int) -> int:
        boundary = self.query.boundaries[name]
        watermark = self._judged_by(batch_id)
        if seen.earliest is None or seen.earliest > (watermark - EPOCH) // timedelta(microseconds=1):
            return 0
        if boundary.late_before == watermark:
            return seen.late_at_start
        return boundary.late_rows(plan.source_frame(name), watermark)

    def _position(self, name: str, offset: Any) -> dict[str, Any]:
        """Return what a batch notes of the place up to which it has read a source, see `SourceKind`."""
        source, project = self.pipeline.sources[name], self.generation.project
        code = SOURCES[source.format].position
        if code is None or not isinstance(offset, dict):
            return {}
        noted: dict[str, Any] = code_at(code)(Storage.of_source(project, source), source, offset)
        return noted

    def _until_now(self, shown: Mapping[str, datetime]) -> dict[str, dict[str, str]]:
        """Return the greatest event time so far, by source, in the form that a batch records."""
        known = self.generation.metastore.maxima(self.pipeline.name, self.generation.number)
        greatest = {**known, **{name: max(at, known.get(name, at)) for name, at in shown.items()}}
        return {name: {"greatest": at.isoformat()} for name, at in greatest.items()}

    def _judged_by(self, batch_id: int) -> datetime:
        """Return the watermark that decides which rows of a batch are late."""
        return EPOCH + timedelta(milliseconds=self.files.late_watermark(batch_id))


def _by_source(seen: Observed, late: int) -> dict[str, Any]:
    return {
        "read": seen.read,
        "malformed": seen.malformed,
        "future": seen.future,
        "quarantined": seen.quarantined,
        "fed": seen.fed,
        "late": late,
        "rules": dict(seen.by_rule),
    }


def _replayed(replays: Sequence[QuarantineDecision]) -> Counts:
    fed = [feed for each in replays for feed in each.feeds.values()]
    return Counts(replayed=sum(feed["rows"] for feed in fed), late=sum(feed["late"] for feed in fed))


def _maxima(observed: Mapping[str, Observed], replays: Sequence[QuarantineDecision]) -> dict[str, datetime]:
    """Return the greatest event time that was fed, by source."""
    shown = [(name, seen.greatest) for name, seen in observed.items()]
    shown += [(name, feed["greatest"]) for each in replays for name, feed in each.feeds.items()]
    micros: dict[str, int] = {}
    for name, greatest in shown:
        if greatest is not None:
            micros[name] = max(micros.get(name, greatest), greatest)
    return {name: EPOCH + timedelta(microseconds=greatest) for name, greatest in micros.items()}
