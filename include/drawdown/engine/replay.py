"""A replay: one closed event-time interval, computed again from the sources, put in place of what is there.

 1  take the interval's lease: a second replay of it waits
 2  find the basis: the last batch that readers see, and refuse what the live query is not finished with
 3  plan the pipeline as a drain does, and look how far its state reaches
 4  read what the live query had read by then, [start - lookback, end + lookahead), through the same boundary
 5  run the same transform over it, keep the rows whose time_column is in [start, end), stage them apart
 6  audit exactly those rows
 7  replace the interval in one commit; overtaken by a batch that holds rows of it: again from 2
 8  write the run record

The live checkpoint, its lease and its state are not touched: drains go on. Killed anywhere, the same
replay again gives the same table.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from drawdown.engine.boundary import fed_rows
from drawdown.engine.bounded import bounded_output
from drawdown.engine.failures import of_run
from drawdown.engine.planning import plan_pipeline
from drawdown.engine.query import Query
from drawdown.engine.refused_rows import refuse_rows
from drawdown.engine.replay_reach import refuse_far_state, refuse_no_time
from drawdown.engine.run_context import RunContext
from drawdown.engine.slice import Auditor
from drawdown.engine.sources.bounded import read_bounded
from drawdown.errors import AuditFailed, SourceError
from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.lease_keeper import LeaseKeeper, when_free
from drawdown.metastore.records import Counts, Run, RunState, Verdict
from drawdown.metastore.runs import REPLAY
from drawdown.plan.rebuild import in_use
from drawdown.plan.replay import Basis
from drawdown.publishing.replay import Replacement, replace_interval, staged_folder, stand_on
from drawdown.spec import Pipeline, Project
from drawdown.spec.interval import Interval
from drawdown.storage import Storage

_ATTEMPTS = 5


def replay(
    root: SparkSession,
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    auditor: Auditor,
    interval: Interval,
    context: RunContext,
) -> Run:
    """Replay one interval; the steps are this module's page.

    Returns:
        The finished run record, of kind ``replay``.

    Raises:
        RefusedError, SpecError, SourceError, TransformError: nothing is replaced.
        AuditFailed: the rows were judged fail or error; nothing is replaced.
        BusyError: asked to stop while another replay was in turn.
    """
    between = [interval.start.isoformat(), interval.end.isoformat()]
    record = context.record(pipeline.name, REPLAY, interval=between)
    work = _Replay(root, project, pipeline, metastore, auditor, interval, context)
    with work.in_turn(f"{pipeline.name}#replay {interval.name}"):
        metastore.crash_replays(record)
        metastore.start_run(record)
        try:
            return work.run()
        except Exception as cause:  # noqa: BLE001 - the record must not stay `running` whatever happens
            error = of_run(root, project, pipeline, metastore, cause)
            work.finish("failed", error=error.as_dict())
            raise error from None


@dataclass
class _Replay:
    root: SparkSession
    project: Project
    pipeline: Pipeline
    metastore: Metastore
    auditor: Auditor
    interval: Interval
    context: RunContext

    def __post_init__(self) -> None:
        self.storage = Storage(self.project.storage_root)
        self.folder = staged_folder(self.pipeline.name, self.interval)
        self.known: dict[str, Any] = {}
        self.counts = Counts()

    def in_turn(self, lease: str) -> AbstractContextManager[LeaseKeeper]:
        """A lease of its own, after whoever has it."""
        ttl, holder = self.project.lease_ttl.delta, self.context.holder
        return when_free(self.metastore, lease, holder, self.context.run_id, ttl, self.context.stop)

    def run(self) -> Run:
        for _ in range(_ATTEMPTS):
            # A swap or a roll back meanwhile puts another version in use.
            self.pipeline = in_use(self.project, self.metastore, self.pipeline)
            basis = stand_on(self.project, self.pipeline, self.metastore, self.interval)
            self.known |= {"generation": basis.checkpoint.generation, "watermark": basis.closed}
            try:
                verdict = self._stage_and_judge(basis)
                if self._replace(basis):
                    break
            finally:
                self.storage.delete(self.folder)
            self.context.on_notice(f"a batch brought rows of {self.interval} meanwhile: once more")
        else:
            raise SourceError(
                "replay.overtaken",
                f"drains of {self.pipeline.name} brought rows of {self.interval} {_ATTEMPTS} times meanwhile",
                where=f"pipeline {self.pipeline.name}",
                do="replay it when fewer late rows come, or let a longer interval need fewer replays",
            )
        self.counts = replace(self.counts, published=self.counts.staged)
        self.context.on_verdict(verdict, self.counts.published)
        return self.finish("succeeded", stop_reason=f"replaced {self.interval}")

    # 3 to 6

    def _stage_and_judge(self, basis: Basis) -> Verdict:
        query = plan_pipeline(self.root, self.project, self.pipeline, self.metastore).accepted()
        refuse_no_time(query.schema, self.pipeline)
        refuse_far_state(query, self.pipeline, self.interval)
        with durable("replay.stage"):
            self._stage(query, basis)
        rows = query.session.read.schema(query.schema).parquet(self.storage.path(self.folder))
        self.counts = replace(self.counts, staged=rows.count())
        said = self.auditor(rows, self.pipeline.judged_alone(), self.counts.staged)
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
                do="mend the data, the transform or the expectation, then replay the interval again",
            )
        return verdict

    def _stage(self, query: Query, basis: Basis) -> None:
        """Write what the transform makes of the sources; nothing before their rows are accounted for."""
        of = self.metastore, basis, self.interval
        judged = {
            name: boundary.judge(
                read_bounded(query.session, self.project, self.pipeline, name, query.inferred.get(name), *of)
            )
            for name, boundary in query.boundaries.items()
        }
        observed = {name: query.boundaries[name].count(frame) for name, frame in judged.items()}
        refuse_rows(self.pipeline, query.boundaries, observed)
        self.counts = sum((seen.counts(late=0) for seen in observed.values()), Counts())
        fed = {name: fed_rows(frame) for name, frame in judged.items()}
        with bounded_output(query.session, self.project, self.pipeline, fed) as output:
            self._within(output).write.mode("overwrite").parquet(self.storage.path(self.folder))

    def _within(self, output: DataFrame) -> DataFrame:
        time = F.col(f"`{self.pipeline.sink.time_column}`").cast("timestamp")
        return output.where((time >= F.lit(self.interval.start)) & (time < F.lit(self.interval.end)))

    # 7 and 8

    def _replace(self, basis: Basis) -> bool:
        info = {
            "drawdown.pipeline": self.pipeline.name,
            "drawdown.run": self.context.run_id,
            "drawdown.replay": str(self.interval),
        }
        replacement = Replacement(self.interval, basis, self.folder, info)
        with self.in_turn(f"{self.pipeline.name}#replay"), durable("replay.commit"):
            return replace_interval(self.metastore, self.project, self.pipeline, replacement)

    def finish(self, state: RunState, **values: Any) -> Run:
        """Close the run record with what is known by now."""
        run_id = self.context.run_id
        return self.metastore.finish_run(run_id, state, counts=self.counts, **self.known, **values)
