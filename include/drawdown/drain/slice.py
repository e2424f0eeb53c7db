"""The slice of a run: every committed batch that nobody has judged, audited, then published or held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from drawdown.errors import AuditFailed
from drawdown.fault_points import durable
from drawdown.held.deadlines import check_held_deadlines
from drawdown.metastore.records import Lease, Verdict
from drawdown.publishing import publish_passed, publish_quarantine
from drawdown.query.query import Query
from drawdown.sinks.stage import SinkStage
from drawdown.spec import Pipeline
from drawdown.workspace import Generation


class AuditOutcome(Protocol):
    """What an auditor says of a slice; see drawdown.quality."""

    @property
    def outcome(self) -> Any: ...
    @property
    def results(self) -> list[dict[str, Any]]: ...
    @property
    def text(self) -> str: ...
    @property
    def measures(self) -> dict[str, Any]: ...


Auditor = Callable[[DataFrame, Pipeline, int], AuditOutcome]


@dataclass(frozen=True)
class SliceAuditor:
    """Audits and publishes what a run's batches have staged; steps 9 and 10 of a drain.

    Attributes:
        lease: asks for the current lease, and raises when it was lost.
    """

    generation: Generation
    auditor: Auditor
    sink: SinkStage
    query: Query
    lease: Callable[[], Lease]

    def audit(self, run_id: str) -> Verdict:
        """Judge every committed batch that nobody has judged; ``empty`` when there is none."""
        generation, pipeline = self.generation, self.generation.pipeline
        slice_ = generation.batches(("committed",))
        ids = [batch.batch_id for batch in slice_]
        # In complete mode each batch stages the whole result; a table is given the last one only.
        of_a_table = pipeline.sink.readable and pipeline.sink.mode == "complete"
        judged = slice_[-1:] if of_a_table else slice_
        rows = sum(batch.counts.staged for batch in judged)
        files = generation.staged_files([batch.batch_id for batch in judged], table="output")
        frame = self.sink.rows_of(self.query.session, self.query.schema, files)
        said = self.auditor(frame, pipeline, rows)
        verdict = Verdict(
            pipeline.name,
            generation.number,
            run_id,
            first_batch=min(ids, default=-1),
            last_batch=max(ids, default=-1),
            outcome=said.outcome,
            results=said.results,
            text=said.text,
            measures=said.measures,
        )
        if ids:
            publish_quarantine(generation.workspace, self.lease(), pipeline, slice_)
            with durable("verdict.note"):
                generation.metastore.record_verdict(self.lease(), verdict)
        return verdict

    def publish(self) -> int:
        """Make visible what has passed and no held batch stands before; returns its rows."""
        return publish_passed(self.generation, self.lease()).rows

    def check_held_deadlines(self, tell: Callable[[str], None]) -> list[dict[str, str]]:
        """Notices of held slices whose term ends; raises AuditFailed ``slice.overdue`` when one is over."""
        return check_held_deadlines(self.generation.workspace, self.generation.pipeline.name, tell)

    def waiting(self) -> str:
        """What passed and is not published, because a batch before it is held; empty when there is none."""
        waiting, name = self.generation.batches(("passed",)), self.generation.pipeline.name
        if not waiting:
            return ""
        rows = sum(batch.counts.staged for batch in waiting)
        held = self.generation.batches(("held",))[0].batch_id
        return (
            f"; {rows:,} row(s) that passed wait behind held batch {held}:"
            f" `drawdown release {name}` or `drawdown discard {name}`"
        )


def not_passed(pipeline: Pipeline, verdict: Verdict) -> AuditFailed:
    """The error of a run whose slice was judged fail or error."""
    if pipeline.sink.publish == "direct":
        state, do = "is visible already (publish: direct)", "fix the data; later runs are judged again"
    elif verdict.outcome == "fail":
        state = "is not published"
        do = f"`drawdown release {pipeline.name}` publishes the held rows as they are, `discard` drops them"
    else:
        state, do = "is not published", "fix the expectation; the next run audits the same rows again"
    return AuditFailed(
        f"audit.{verdict.outcome}",
        f"the slice of {pipeline.name} {state}: {verdict.text}",
        where=f"batches {verdict.first_batch} to {verdict.last_batch}",
        do=do,
    )
