"""Replay of a quarantine: rows that now pass go through the live transform, once (decision 0011).

 1  take the lease; complete a replay that died, or that an earlier try of the task has begun, and do nothing
    else
 2  refuse if the next batch was already attempted: its rows are fixed
 3  judge the open rows again, with patches, by the current boundary, rules and watermark; if none passes,
    drain only if an earlier run has left rows to audit or to publish
 4  record, in one fenced transaction, which rows go into which batch: from here on they are not open
 5  plan that batch and drain: it is executed with them, audited and published like any other

The rows are in once Spark's commit log has their batch; every attempt at it has the same rows.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from drawdown.drain.attempt import Attempt
from drawdown.drain.drain import Drain, under_lease
from drawdown.drain.planning import PipelinePlan, pending_replays, plan_pipeline
from drawdown.errors import RefusedError, SpecError, TransformError
from drawdown.fault_points import durable
from drawdown.layout import scratch_of
from drawdown.metastore.operations.runs import QUARANTINE_REPLAY
from drawdown.metastore.records import BatchStatus, QuarantineDecision, Run
from drawdown.plan.begun_batch import begun_batch
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.quarantine.request import ReplayRequest
from drawdown.quarantine.row_states import (
    DRIFT,
    SetAside,
    folder_of,
    forgotten_replays,
    set_aside,
    write_keys,
    write_rows,
)
from drawdown.quarantine.spark_restored_columns import KEY, SetAsideColumns, parse_patch
from drawdown.query.bounded import bounded_output
from drawdown.rows.quarantine_replay import TAKEN
from drawdown.rows.row_fates import DRIFTED, FATE, FED, FUTURE, MALFORMED, RULED_OUT
from drawdown.sources.reader import read_stream
from drawdown.sources.spark_system_columns import SYSTEM_COLUMNS
from drawdown.spark.named_columns import named
from drawdown.spark.sentences import spark_sentence
from drawdown.spec import Pipeline
from drawdown.spec.query_settings import BATCHES_TO_RETAIN
from drawdown.values.nearest import did_you_mean
from drawdown.values.text import counted
from drawdown.workspace import Workspace

KIND = QUARANTINE_REPLAY
_LEFT: tuple[BatchStatus, ...] = ("staged", "committed", "passed")
"""Of batches that a run has left without a decision or a publish."""
_LATE = "_dd_late"
_FATES = {MALFORMED: "malformed", FUTURE: "future", RULED_OUT: "ruled out", DRIFTED: "drift"}


@dataclass(frozen=True)
class Judged:
    """The result of judging the chosen rows.

    Attributes:
        feeds: as `QuarantineDecision` keeps them, of the sources that have rows to feed.
        taken: the rows that go on.
        left: how many stay open, by why.
    """

    feeds: Mapping[str, dict[str, Any]]
    taken: Sequence[SetAside]
    left: Mapping[str, int]

    @property
    def said(self) -> str:
        late = sum(feed["late"] for feed in self.feeds.values())
        parts = [f"passed: {counted(len(self.taken), 'row')}" + (f", {late:,} of them late" if late else "")]
        parts += [f"{count:,} stay open ({why})" for why, count in self.left.items()]
        return "; ".join(parts)


def replay(attempt: Attempt, asked: ReplayRequest) -> Run:
    """Replay the chosen open rows that pass now, in the steps of this module's docstring.

    Returns:
        The finished run record: ``counts.replayed``, and in ``origin`` the request and its result.

    Raises:
        BusyError: another run holds the lease.
        SpecError, TransformError: the patch is not an expression over the rows' columns.
        RefusedError: ``quarantine.none``, ``quarantine.unfinished``, and as a drain.
        AuditFailed: the rows went in, but their slice is held.
    """
    record = attempt.context.record(attempt.pipeline.name, KIND, **asked.choice.said, set=list(asked.patch))
    return under_lease(
        attempt,
        record,
        lambda heartbeat: QuarantineReplay(attempt, heartbeat, asked=asked, origin=dict(record.origin)),
    )


def judge_only(
    root: SparkSession,
    workspace: Workspace,
    pipeline: Pipeline,
    asked: ReplayRequest,
    run_id: str,
) -> Judged:
    """Return what a replay would include now; leaves nothing behind. Raises as `replay`."""
    folder = scratch_of(pipeline.name, run_id)
    try:
        plan = plan_pipeline(root, workspace, pipeline)
        return _judge(plan, workspace, pipeline, asked, folder)
    finally:
        workspace.storage.delete(folder)


@dataclass
class QuarantineReplay(Drain):
    """A drain whose first batch includes quarantined rows."""

    asked: ReplayRequest = field(default_factory=ReplayRequest)
    origin: dict[str, Any] = field(default_factory=dict)

    def run(self) -> Run:
        plan = plan_pipeline(self.attempt.root, self.workspace, self.pipeline)
        plan.accepted()
        self.tally.generation = plan.generation
        pending = pending_replays(plan.generation)
        if pending:
            rows = sum(each.rows for each in pending)
            self.context.on_notice(
                f"an earlier replay died: only its rows are replayed now: {counted(rows, 'row')}"
            )
            return super().run()
        if self._decided_in_an_earlier_try(plan):
            self.context.on_notice("an earlier try has replayed the rows: this one completes what it left")
            return super().run()
        batch_id = self._next_batch(plan)
        # No interval replay may commit meanwhile: it would also include rows that are judged here.
        turn = f"{self.pipeline.name}#replay"
        with self.attempt.wait_for_lease(turn) as replays:
            clean_up_changes(self.workspace, replays.lease, self.pipeline)
            self._sweep(plan)
            folder = folder_of(self.pipeline, self.context.run_id)
            with durable("replay.judge"):
                judged = _judge(plan, self.workspace, self.pipeline, self.asked, folder)
            self.origin |= {"rows": len(judged.taken), "left": dict(judged.left)}
            self.workspace.metastore.update_run(self.context.run_id, origin=self.origin)
            self.context.on_notice(judged.said)
            if judged.taken:
                self._refuse_one_key_twice(plan, judged, folder)
                self._note(plan, batch_id, folder, judged)
            else:
                self.workspace.storage.delete(folder)
        # A replay that died behind its batch has left a slice to audit and to publish.
        if judged.taken or plan.generation.batches(_LEFT):
            return super().run()
        return self.finish("succeeded", stop_reason=f"nothing to replay: {judged.said}")

    def _decided_in_an_earlier_try(self, plan: PipelinePlan) -> bool:
        """Whether this run of the DAG has recorded which rows it replays: a retried task asks once only."""
        dag_run = self.origin.get("dag_run_id")
        return dag_run is not None and any(
            each.kind == "replay"
            and each.generation == plan.generation.number
            and each.origin.get("dag_run_id") == dag_run
            for each in self.workspace.metastore.decisions(self.pipeline.name)
        )

    def _next_batch(self, plan: PipelinePlan) -> int:
        """Return the batch that takes the rows; no earlier attempt may have fixed its rows."""
        generation = plan.generation
        last = generation.files.last_commit_batch()
        if generation.checkpoint is None or last is None:
            raise RefusedError(
                "quarantine.none",
                f"{self.pipeline.name} has no committed batch",
                where=f"pipeline {self.pipeline.name}",
                do=f"`drawdown run {self.pipeline.name}`",
            )
        if generation.batch(last + 1) or begun_batch(generation, self.sink) is not None:
            raise RefusedError(
                "quarantine.unfinished",
                f"a run died in batch {last + 1} of {self.pipeline.name}, whose rows are already fixed",
                where=self.workspace.storage.path(generation.path),
                do=f"`drawdown run {self.pipeline.name}` completes it; then replay",
            )
        return last + 1

    def _refuse_one_key_twice(self, plan: PipelinePlan, judged: Judged, folder: str) -> None:
        """Refuse before anything is noted: the batch that takes the rows could never be written.

        With state a key comes once, whatever is fed.
        """
        query, keys = plan.accepted(), self.pipeline.sink.keys
        if not keys or query.operators:
            return
        session = query.session
        fed = {
            name: session.read.parquet(self.workspace.storage.path(feed["path"])).where(TAKEN).drop(TAKEN)
            for name, feed in judged.feeds.items()
        }
        for name, schema in _schemas(plan, self.workspace, self.pipeline).items():
            fed.setdefault(name, session.createDataFrame([], schema))
        with bounded_output(session, self.workspace.project, self.pipeline, fed) as output:
            by_key = output.groupBy(*[named(key) for key in keys]).count().where("count > 1")
            twice = by_key.orderBy(*[named(key) for key in keys]).limit(3).collect()
        if not twice:
            return
        self.workspace.storage.delete(folder)
        shown = "; ".join(", ".join(f"{key} {row[key]}" for key in keys) for row in twice)
        raise RefusedError(
            "quarantine.one-key-twice",
            f"several of the rows would write one key of {self.pipeline.name} in a batch ({shown}), and"
            " nothing says which is the newest; nothing was replayed",
            where=f"pipeline {self.pipeline.name}",
            do="replay them one after the other, the newest last (`--file` and `--rule` choose rows, too):"
            f" `drawdown quarantine replay {self.pipeline.name} --batch BATCH --why ...`; or drop the older"
            f" ones: `drawdown quarantine drop {self.pipeline.name} --batch BATCH --why ... --yes`;"
            f" `drawdown quarantine show {self.pipeline.name}` lists them with their batches",
        )

    def _note(self, plan: PipelinePlan, batch_id: int, folder: str, judged: Judged) -> None:
        files = plan.generation.files
        planned = files.last_offset_batch() == batch_id
        decision = QuarantineDecision(
            self.context.run_id,
            self.pipeline.name,
            "replay",
            plan.generation.number,
            len(judged.taken),
            write_keys(self.workspace.storage, folder, judged.taken),
            batch_id,
            files.offsets(batch_id).planned_ms if planned else int(time.time() * 1_000),
            dict(judged.feeds),
            self.origin,
        )
        with durable("replay.note"):
            self.workspace.metastore.note_decision(self.heartbeat.lease, decision)

    def _sweep(self, plan: PipelinePlan) -> None:
        """Remove files of replays that died before recording them, and of batches that Spark has purged."""
        decisions = {
            each.decision_id: each for each in self.workspace.metastore.decisions(self.pipeline.name)
        }
        forgotten = forgotten_replays(self.workspace.project, self.pipeline, decisions)
        above = folder_of(self.pipeline, "")
        oldest = (plan.generation.files.last_commit_batch() or 0) - BATCHES_TO_RETAIN
        for name in {
            info.relative[len(above) :].split("/")[0]
            for info in self.workspace.storage.walk(above.rstrip("/"))
        }:
            known = decisions.get(name)
            if known is None:
                if name not in forgotten:
                    self.workspace.storage.delete(f"{above}{name}")
            elif known.generation != plan.generation.number or known.batch_id < oldest:
                self.workspace.storage.delete(f"{above}{name}/rows")


def _judge(
    plan: PipelinePlan,
    workspace: Workspace,
    pipeline: Pipeline,
    asked: ReplayRequest,
    folder: str,
) -> Judged:
    """Write the judged rows of every source into the folder."""
    query = plan.accepted()
    storage = workspace.storage
    rows = set_aside(workspace, pipeline)
    chosen = [row for row in rows if row.state == "open" and asked.choice.fits(row)]
    skipped = [row for row in chosen if not asked.choice.replays(row)]
    left: Counter[str] = Counter({DRIFT: len(skipped)} if skipped else {})
    patch = parse_patch(query.session, asked.patch)
    schemas = _schemas(plan, workspace, pipeline)
    _refuse_unknown(patch, {column for schema in schemas.values() for column in schema.names})
    feeds, taken = {}, []
    for name, schema in schemas.items():
        own = [row for row in chosen if row.source == name and asked.choice.replays(row)]
        if not own:
            continue
        kept = query.session.read.parquet(
            storage.path(write_rows(storage, f"{folder}/kept-{name}.parquet", own))
        )
        frame = SetAsideColumns(pipeline, name, schema, patch).rows(kept)
        path = f"{folder}/rows/{name}"
        found = _written(plan, name, frame, storage.path(path), asked.with_late)
        storage.delete(f"{folder}/kept-{name}.parquet")
        keys = {row[KEY] for row in found.where(TAKEN).select(KEY).collect()}
        fed = [row for row in own if row.key in keys]
        taken += fed
        left += _left(found)
        if fed:
            feeds[name] = {"path": path, "rows": len(fed), **_of_feed(plan, name, found.where(TAKEN))}
    return Judged(feeds, taken, dict(left))


def _schemas(plan: PipelinePlan, workspace: Workspace, pipeline: Pipeline) -> dict[str, StructType]:
    """Return the columns of each source, by its name."""
    query = plan.accepted()
    return {
        name: read_stream(query.session, workspace.project, pipeline, name, query.inferred.get(name))
        .drop(*SYSTEM_COLUMNS)
        .schema
        for name in pipeline.streaming_sources
    }


def _written(plan: PipelinePlan, name: str, frame: DataFrame, path: str, with_late: bool) -> DataFrame:
    """The rows of a source, judged, as files: what is counted here is what the batch reads."""
    query = plan.accepted()
    boundary = replace(query.boundaries[name], aside=())
    judged = boundary.judge(frame)
    late = F.lit(False)
    # Without state nothing is dropped as late.
    if query.operators and boundary.late_before is not None and boundary.source.watermark is not None:
        late = F.coalesce(boundary.is_late(boundary.late_before), F.lit(False))
    judged = judged.withColumn(_LATE, late).withColumn(
        TAKEN, (F.col(FATE) == FED) & (~F.col(_LATE) | F.lit(with_late))
    )
    try:
        judged.drop(*SYSTEM_COLUMNS).write.parquet(path)
    except PySparkException as cause:
        raise TransformError(
            "quarantine.patch-failed",
            f"the patch fails on a row of source {name}: {spark_sentence(cause)}",
            where="--set",
            do="choose matching rows (--rule, --batch, --file), or use try_cast; nothing was replayed",
        ) from None
    return query.session.read.parquet(path)


def _left(found: DataFrame) -> Counter[str]:
    counted = found.where(~F.col(TAKEN)).groupBy(FATE, _LATE).count().collect()
    left: Counter[str] = Counter()
    for fate, late, count in counted:
        left["late" if late else _FATES[fate]] += count
    return left


def _of_feed(plan: PipelinePlan, name: str, taken: DataFrame) -> dict[str, Any]:
    """How many of the rows are late, and their greatest event time in microseconds since 1970 UTC."""
    mark = plan.generation.pipeline.sources[name].watermark
    time_column = F.col(f"`{mark.column}`").cast("timestamp") if mark else F.lit(None).cast("timestamp")
    late, greatest = taken.agg(F.count_if(_LATE), F.max(F.unix_micros(time_column))).collect()[0]
    return {"late": late, "greatest": greatest}


def _refuse_unknown(patch: Mapping[str, str], columns: Collection[str]) -> None:
    for column in patch:
        if column not in columns:
            raise SpecError(
                "quarantine.patch",
                f"no source has a column {column}",
                where="--set",
                do=did_you_mean(column, columns),
            )
