"""A rebuild: a new generation of a pipeline's checkpoint, drained from the beginning beside the live one.

 1  check the refusals, before anything is written
 2  record what the live generation has published so far
 3  drain like any run, into tables below the live ones, under a separate lease
 4  compare both outputs, and record the result with the generation
 5  refuse a rebuild that dropped more late rows than the live query

Running it again continues where it stopped. Drains of the live generation continue meanwhile;
rebuild/publish.py swaps the new one in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from drawdown.delta.table import DeltaTableFiles
from drawdown.drain.attempt import Attempt
from drawdown.drain.drain import ASKED_TO_STOP, DRAINED, Drain, Opened, under_lease
from drawdown.drain.slice import AuditResult
from drawdown.errors import AuditFailed
from drawdown.fault_points import durable
from drawdown.metastore.operations.runs import REBUILD
from drawdown.metastore.records import Checkpoint, Run, Verdict
from drawdown.plan.downstream import streaming_readers
from drawdown.rebuild.plan import steps
from drawdown.rebuild.refusals import last_batch, live_of, refuse_more_late, refuse_rebuild
from drawdown.rebuild.spark_comparison import ComparedTable, compare
from drawdown.sinks.delta.shown_generation import refuse_other_generation
from drawdown.sinks.locations import output_uri
from drawdown.spark.session import reading_session
from drawdown.spec import Pipeline
from drawdown.values.commands import rebuild_again
from drawdown.workspace import Generation, Workspace


def rebuild(attempt: Attempt) -> Run:
    """Drain a shadow of the pipeline and compare it, in the steps of this module's docstring.

    Returns:
        The finished run record, of kind ``rebuild``.

    Raises:
        RefusedError: see `refuse_rebuild`; ``rebuild.more-late``. Else as `drain`.
    """
    workspace, pipeline = attempt.workspace, attempt.pipeline
    refuse_rebuild(workspace, pipeline)
    refuse_other_generation(workspace, pipeline)
    live = live_of(workspace.metastore, pipeline.name)
    beside = workspace.metastore.of_rebuilds
    known = beside.active_checkpoint(pipeline.name)
    number = known.generation if known else beside.next_generation(pipeline.name)
    shadow = pipeline.as_shadow(number, steps(workspace, live, pipeline))
    uri = output_uri(workspace.project, pipeline)
    basis = RebuildBasis(live, uri, DeltaTableFiles(uri).version, last_batch(workspace.metastore, live))

    def judge(rows: DataFrame, of: Pipeline, count: int) -> AuditResult:
        # Slices of a rebuild do not belong to the history, so they are not compared with it.
        return attempt.auditor(rows, of.judged_alone(), count)

    apart = replace(attempt, workspace=Workspace(workspace.project, beside), pipeline=shadow, auditor=judge)
    record = attempt.context.record(pipeline.name, REBUILD)
    return under_lease(apart, record, lambda heartbeat: Rebuild(apart, heartbeat, basis=basis))


@dataclass(frozen=True)
class RebuildBasis:
    """What the live generation had published when the rebuild's drain began; the basis of the comparison."""

    live: Checkpoint
    uri: str
    version: int
    batch: int


@dataclass
class Rebuild(Drain):
    """A drain of the shadow generation; it ends at the sources' end as of its start; it has no other
    bound."""

    basis: RebuildBasis = field(kw_only=True)

    def _stop_reason(self, batches: int, seconds: float) -> str | None:
        return ASKED_TO_STOP if self.context.stop.is_set() else None

    def _judge(self, opened: Opened) -> Verdict:
        verdict = super()._judge(opened)
        if verdict.outcome in ("fail", "error"):
            name = self.pipeline.name
            raise AuditFailed(
                f"audit.{verdict.outcome}",
                f"the rebuild of {name} did not pass its audit: {verdict.text}",
                where=f"{verdict.batches} of the rebuild",
                do=rebuild_again(name, "fix the new version"),
            )
        return verdict

    def _conclude(self, opened: Opened, stop_reason: str) -> None:
        super()._conclude(opened, stop_reason)
        if stop_reason != DRAINED:
            return
        comparison = self._compare(opened.generation)
        noted = {"from_next": self.pipeline.is_next, "comparison": comparison}
        with durable("rebuild.compare"):
            self.workspace.metastore.change_generations(
                self.heartbeat.lease, {opened.generation.number: {"rebuild": noted}}
            )
        refuse_more_late(self.pipeline.name, comparison["late"])

    def _compare(self, generation: Generation) -> dict[str, Any]:
        checkpoint = generation.record
        session = reading_session(self.attempt.root, self.pipeline)
        live = ComparedTable(session, self.basis.uri, self.basis.version)
        shadow = ComparedTable(session, output_uri(self.workspace.project, self.pipeline))
        last = last_batch(self.workspace.metastore, checkpoint)
        return {
            "live_generation": self.basis.live.generation,
            "live_version": self.basis.version,
            "live_batch": self.basis.batch,
            "shadow_batch": last,
            "readers": streaming_readers(
                self.workspace, self.pipeline, DeltaTableFiles(self.basis.uri).table_id
            ),
            **compare(live, shadow, self.pipeline.sink, self.pipeline.sample_gate),
            "late": {
                "live": self._late(self.basis.live, self.basis.batch),
                "shadow": self._late(checkpoint, last),
            },
        }

    def _late(self, checkpoint: Checkpoint, last: int) -> int:
        noted = self.workspace.metastore.batches(checkpoint.pipeline, checkpoint.generation)
        return sum(batch.counts.late for batch in noted if batch.batch_id <= last)
