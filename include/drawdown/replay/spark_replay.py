"""A replay: recomputes one closed event-time interval from the sources and replaces its rows.

 1  take the interval's lease: a second replay of it waits
 2  find the basis: the last batch that readers see, and refuse what the live query is not finished with
 3  plan the pipeline as a drain does, and look how far the rows of the interval reach beyond it
 4  read what the live query had read by then, [start - lookback, end + lookahead), through the same boundary;
    what was decided about rows of the quarantine holds (spark_decided_rows.py)
 5  run the same transform over it, keep the rows whose time_column is in [start, end), stage them apart;
    in update mode without state batch by batch, and keep the last row of each key
 6  audit exactly those rows
 7  replace the interval in one commit; overtaken by a batch that holds rows of it: again from 2
 8  write the run record

The live checkpoint, its lease and its state are not touched: drains go on. Killed anywhere, the same
replay again gives the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from drawdown.drain.attempt import Attempt
from drawdown.drain.failures import of_run
from drawdown.drain.planning import plan_pipeline
from drawdown.errors import AuditFailed, DrawdownError, SourceError
from drawdown.fault_points import durable
from drawdown.metastore.operations.runs import REPLAY
from drawdown.metastore.records import Counts, Run, RunState, Verdict
from drawdown.plan.version_in_use import in_use
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.query.bounded import bounded_output, last_of_keys
from drawdown.query.query import Query
from drawdown.replay.plan import refuse_open
from drawdown.replay.publish import Replacement, replace_interval, staged_folder, staged_in, stand_on
from drawdown.replay.spark_arrivals import ARRIVAL, with_arrival
from drawdown.replay.spark_decided_rows import DecidedRows
from drawdown.replay.spark_reach import Reach, refuse_no_time
from drawdown.rows.refused import refuse_rows
from drawdown.rows.row_fates import FATE, FED, fed_rows
from drawdown.sinks.upsert import refuse_duplicate_keys
from drawdown.sources.replay_basis import ReplayBasis, replay_of
from drawdown.sources.spark_bounded import BoundedReading
from drawdown.spark.fit_values import refusing_unfit
from drawdown.values.interval import Interval
from drawdown.workspace import Generation

_ATTEMPTS = 5


def replay(attempt: Attempt, interval: Interval) -> Run:
    """Replay one interval, in the steps of this module's docstring.

    Returns:
        The finished run record, of kind ``replay``.

    Raises:
        RefusedError, SpecError, SourceError, TransformError: nothing is replaced.
        AuditFailed: the rows were judged fail or error; nothing is replaced.
        BusyError: asked to stop while waiting for another replay.
    """
    workspace, pipeline = attempt.workspace, attempt.pipeline
    between = [interval.start.isoformat(), interval.end.isoformat()]
    record = attempt.context.record(pipeline.name, REPLAY, interval=between)
    work = _Replay(attempt, interval)
    with attempt.wait_for_lease(f"{pipeline.name}#replay {interval.name}"):
        workspace.metastore.start_run(record)
        workspace.metastore.crash_replays(record)
        attempt.context.on_open(work.abandon)
        try:
            return work.run()
        except Exception as cause:  # noqa: BLE001 - the record must not stay `running` whatever happens
            error = attempt.context.given_up() or of_run(attempt.root, workspace, pipeline, cause)
            work.finish("failed", error=error.as_dict())
            raise error from None


@dataclass
class _Replay:
    attempt: Attempt
    interval: Interval
    decided: DecidedRows = field(init=False)

    def __post_init__(self) -> None:
        self.workspace, self.context = self.attempt.workspace, self.attempt.context
        self.pipeline = self.attempt.pipeline
        self.storage = self.workspace.storage
        self.folder = staged_folder(self.pipeline.name, self.interval)
        self.rows = f"{self.folder}/rows"
        self.known: dict[str, Any] = {}
        self.counts = Counts()

    def run(self) -> Run:
        for _ in range(_ATTEMPTS):
            # A swap or roll back in the meantime puts another version in use.
            self.pipeline = in_use(self.workspace, self.pipeline)
            basis = stand_on(self.workspace, self.pipeline, self.interval)
            self.known |= {"generation": basis.checkpoint.generation, "watermark": basis.closed}
            try:
                verdict = self._stage_and_judge(basis)
                if self._replace(basis):
                    break
            finally:
                self.storage.delete(self.folder)
                self.storage.delete(f"{self.folder}-decided")
            self.context.on_notice(f"a batch added rows of {self.interval} in the meantime: starting again")
        else:
            raise SourceError(
                "replay.overtaken",
                f"drains of {self.pipeline.name} added rows of {self.interval} during {_ATTEMPTS} attempts",
                where=f"pipeline {self.pipeline.name}",
                do="replay it when fewer late rows arrive, or replay longer intervals",
            )
        self.counts = replace(self.counts, published=self.counts.staged)
        self.context.on_verdict(verdict, self.counts.published)
        return self.finish("succeeded", stop_reason=f"replaced {self.interval}")

    # 3 to 6

    def _stage_and_judge(self, basis: ReplayBasis) -> Verdict:
        query = plan_pipeline(self.attempt.root, self.workspace, self.pipeline).accepted()
        self.context.on_planned(Generation(self.workspace, self.pipeline, basis.checkpoint), query)
        refuse_no_time(query.schema, self.pipeline, self.interval)
        reach = Reach(query, self.pipeline, self.interval)
        reach.refuse_far()
        refuse_open(self.pipeline, self.interval, basis, reach.closed_at)
        with durable("replay.stage"):
            self._stage(query, basis, undated=not reach.is_known)
        rows = query.session.read.schema(query.schema).parquet(self.storage.path(self.rows))
        self.counts = replace(self.counts, staged=rows.count())
        said = self.attempt.auditor(rows, self.pipeline.judged_alone(), self.counts.staged)
        self.known["verdict"] = said.outcome
        last = basis.batch.batch_id
        run_id, generation = self.context.run_id, basis.checkpoint.generation
        verdict = Verdict(
            self.pipeline.name, generation, run_id, last, last, said.outcome, said.results, said.text
        )
        if said.outcome in ("fail", "error"):
            raise AuditFailed(
                f"audit.{said.outcome}",
                f"the replay of {self.pipeline.name}, {self.interval}, replaced nothing: {said.text}",
                where=f"pipeline {self.pipeline.name}",
                do="fix the data, the transform or the expectation, then replay the interval again",
            )
        return verdict

    def _stage(self, query: Query, basis: ReplayBasis, undated: bool) -> None:
        """Write the transform's result, after all source rows are accounted for."""
        # Decisions about quarantined rows apply here, too.
        generation = Generation(self.workspace, self.pipeline, basis.checkpoint)
        decided = self.decided = DecidedRows.read(
            query.session, generation, basis, self.interval, f"{self.folder}-decided", undated
        )
        reading = BoundedReading(query.session, self.workspace, self.pipeline, basis, self.interval, undated)
        read = {
            name: decided.obeyed(name, reading.rows(name, query.inferred.get(name)))
            for name in query.boundaries
        }
        judged = {name: boundary.judge(read[name]) for name, boundary in query.boundaries.items()}
        observed = {name: query.boundaries[name].count(frame) for name, frame in judged.items()}
        refuse_rows(self.pipeline, query.boundaries, observed)
        self.counts = sum((seen.counts(late=0) for seen in observed.values()), Counts())
        for name, frame in judged.items():
            decided.judged(name, frame)
        if self.pipeline.sink.keys and not query.operators:
            self._write_by_arrival(query, judged, basis)
        else:
            fed = {name: fed_rows(frame) for name, frame in judged.items()}
            # What the live query's timers did by then is a part of its output.
            until = self.interval.end + replay_of(self.pipeline).lookahead.delta
            project = self.workspace.project
            with bounded_output(query.session, project, self.pipeline, fed, until=until) as output:
                refusing_unfit(self._within(output), self.pipeline.sink).write.mode("overwrite").parquet(
                    self.storage.path(self.rows)
                )
        files = staged_in(self.storage, self.rows)
        refuse_duplicate_keys(self.storage, self.pipeline, files, f"the replay of {self.interval}")

    def _write_by_arrival(self, query: Query, judged: Mapping[str, DataFrame], basis: ReplayBasis) -> None:
        """Write each batch of the live query separately (no state), and keep the last row per key."""
        metastore = self.workspace.metastore
        arrived = {
            name: with_arrival(frame, metastore, self.pipeline, basis, name) for name, frame in judged.items()
        }
        numbers = {
            row[ARRIVAL]
            for frame in arrived.values()
            for row in frame.where(F.col(FATE) == FED).select(ARRIVAL).distinct().collect()
        }
        path = self.storage.path(f"{self.folder}/arrivals")
        self.storage.delete(f"{self.folder}/arrivals")
        for number in sorted(numbers) or [0]:
            fed = {
                name: fed_rows(frame.where(F.col(ARRIVAL) == number).drop(ARRIVAL))
                for name, frame in arrived.items()
            }
            with bounded_output(query.session, self.workspace.project, self.pipeline, fed) as output:
                numbered = self._within(output).withColumn(ARRIVAL, F.lit(number).cast("long"))
                numbered.write.mode("append").parquet(path)
        schema = StructType([*query.schema.fields, StructField(ARRIVAL, LongType())])
        last = last_of_keys(query.session.read.schema(schema).parquet(path), self.pipeline, ARRIVAL)
        refusing_unfit(last, self.pipeline.sink).write.mode("overwrite").parquet(self.storage.path(self.rows))

    def _within(self, output: DataFrame) -> DataFrame:
        time = F.col(f"`{self.pipeline.sink.time_column}`").cast("timestamp")
        return output.where((time >= F.lit(self.interval.start)) & (time < F.lit(self.interval.end)))

    # 7 and 8

    def _replace(self, basis: ReplayBasis) -> bool:
        info = {"drawdown.replay": str(self.interval)}
        replacement = Replacement(
            self.interval, basis, self.rows, info, self.decided.now_in, frozenset(self.decided.decisions)
        )
        with self.attempt.wait_for_lease(f"{self.pipeline.name}#replay") as turn:
            clean_up_changes(self.workspace, turn.lease, self.pipeline)
            with durable("replay.commit"):
                return replace_interval(self.workspace, turn.lease, self.pipeline, replacement)

    def abandon(self, error: DrawdownError) -> None:
        """Close the run record with an error while the run's thread may still go on."""
        self.finish("failed", error=error.as_dict())

    def finish(self, state: RunState, **values: Any) -> Run:
        """Close the run record with what is known so far."""
        run_id = self.context.run_id
        return self.workspace.metastore.finish_run(run_id, state, counts=self.counts, **self.known, **values)
