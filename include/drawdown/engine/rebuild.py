"""A rebuild: a new generation of a pipeline's checkpoint, drained from the beginning beside the live one.

 1  look what refuses it, before anything is made
 2  note what the live generation has made visible by now
 3  drain as any run does, into tables below those in use, under a lease of its own
 4  compare both outputs, and note it with the generation
 5  refuse what dropped more late rows than the live query

The same again goes on where it stopped. Drains of the live generation go on meanwhile; publishing/rebuild.py
swaps the new one in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from drawdown.engine.comparison import Side, compare
from drawdown.engine.drain import ASKED_TO_STOP, DRAINED, Drain, under_lease
from drawdown.engine.query import Query
from drawdown.engine.run_context import RunContext
from drawdown.engine.session import reading_session
from drawdown.engine.slice import Auditor, AuditOutcome
from drawdown.errors import AuditFailed
from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, Run, Verdict
from drawdown.metastore.runs import REBUILD
from drawdown.plan.downstream import streaming_readers
from drawdown.plan.rebuild import steps
from drawdown.publishing.delta_table import DeltaTableFiles
from drawdown.publishing.rebuild_refusals import (
    last_batch,
    live_of,
    refuse_more_late,
    refuse_rebuild,
)
from drawdown.publishing.targets import output_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


def rebuild(
    root: SparkSession,
    project: Project,
    pipeline: Pipeline,
    metastore: Metastore,
    auditor: Auditor,
    context: RunContext,
) -> Run:
    """Drain a shadow of the pipeline and compare it; the steps are this module's page.

    Args:
        pipeline: the version that is wanted.

    Returns:
        The finished run record, of kind ``rebuild``.

    Raises:
        RefusedError: see `refuse_rebuild`; ``rebuild.more-late``. Else as `drain`.
    """
    refuse_rebuild(project, pipeline, metastore)
    live = live_of(metastore, pipeline.name)
    beside = metastore.of_rebuilds
    known = beside.active_checkpoint(pipeline.name)
    number = known.generation if known else beside.next_generation(pipeline.name)
    shadow = pipeline.as_shadow(number, steps(Storage(project.storage_root), metastore, live, pipeline))
    uri = output_uri(project, pipeline)
    basis = Basis(live, uri, DeltaTableFiles(uri).version, last_batch(metastore, live))

    def judge(rows: DataFrame, of: Pipeline, count: int) -> AuditOutcome:
        # Slices of a rebuild are no next ones of the history, and the history is not compared with them.
        return auditor(rows, of.judged_alone(), count)

    return under_lease(
        lambda keeper: Rebuild(root, project, shadow, beside, judge, context, keeper, basis=basis),
        context.record(pipeline.name, REBUILD),
        project,
        shadow,
        beside,
    )


@dataclass(frozen=True)
class Basis:
    """What the live generation had made visible when the rebuild's drain began: what both are compared by."""

    live: Checkpoint
    uri: str
    version: int
    batch: int


@dataclass
class Rebuild(Drain):
    """A drain of the shadow generation; it ends where the sources ended when it began, without a bound."""

    basis: Basis = field(kw_only=True)

    def _stop_reason(self, batches: int) -> str | None:
        return ASKED_TO_STOP if self.context.stop.is_set() else None

    def _drain(self, query: Query) -> str:
        self.reason = super()._drain(query)
        return self.reason

    def _judge(self) -> Verdict:
        verdict = super()._judge()
        if verdict.outcome in ("fail", "error"):
            name = self.pipeline.name
            raise AuditFailed(
                f"audit.{verdict.outcome}",
                f"what the rebuild of {name} has drained did not pass: {verdict.text}",
                where=f"batches {verdict.first_batch} to {verdict.last_batch} of the rebuild",
                do=f"`drawdown rebuild discard {name} --why ...`, mend what is wanted, and start it again",
            )
        return verdict

    def _conclude(self) -> None:
        super()._conclude()
        if self.reason != DRAINED:
            return
        comparison = self._compare()
        assert self.checkpoint is not None
        noted = {"from_next": self.pipeline.is_next, "comparison": comparison}
        with durable("rebuild.compare"):
            self.metastore.change_generations(
                self.keeper.lease, {self.checkpoint.generation: {"rebuild": noted}}
            )
        refuse_more_late(self.pipeline.name, comparison["late"])

    def _compare(self) -> dict[str, Any]:
        assert self.checkpoint is not None
        session = reading_session(self.root)
        live = Side(session, self.basis.uri, self.basis.version)
        shadow = Side(session, output_uri(self.project, self.pipeline))
        last = last_batch(self.metastore, self.checkpoint)
        return {
            "live_generation": self.basis.live.generation,
            "live_version": self.basis.version,
            "live_batch": self.basis.batch,
            "shadow_batch": last,
            "readers": streaming_readers(
                self.project, self.metastore, self.pipeline, DeltaTableFiles(self.basis.uri).table_id
            ),
            **compare(live, shadow, self.pipeline.sink.keys, self.pipeline.sink.time_column),
            "late": {
                "live": self._late(self.basis.live, self.basis.batch),
                "shadow": self._late(self.checkpoint, last),
            },
        }

    def _late(self, checkpoint: Checkpoint, last: int) -> int:
        noted = self.metastore.batches(checkpoint.pipeline, checkpoint.generation)
        return sum(batch.counts.late for batch in noted if batch.batch_id <= last)
