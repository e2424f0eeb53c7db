"""The slice: all committed batches that no audit has judged. It is audited, then published or held."""

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
from drawdown.values.text import counted
from drawdown.workspace import Generation


class AuditResult(Protocol):
    """An auditor's verdict on a slice; see drawdown.quality."""

    @property
    def outcome(self) -> Any: ...
    @property
    def results(self) -> list[dict[str, Any]]: ...
    @property
    def text(self) -> str: ...
    @property
    def measures(self) -> dict[str, Any]: ...


Auditor = Callable[[DataFrame, Pipeline, int], AuditResult]


@dataclass(frozen=True)
class SliceAuditor:
    """Audits and publishes the staged batches; steps 9 and 10 of a drain.

    Attributes:
        lease: returns the current lease; raises when it is lost.
    """

    generation: Generation
    auditor: Auditor
    sink: SinkStage
    query: Query
    lease: Callable[[], Lease]

    def audit(self, run_id: str) -> Verdict:
        """Audit every committed batch that has no verdict; ``empty`` when there is none."""
        generation, pipeline = self.generation, self.generation.pipeline
        slice_ = generation.batches(("committed",))
        ids = [batch.batch_id for batch in slice_]
        # In complete mode each batch stages the whole result; a table receives only the last.
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
        """Publish passed batches up to the first held one; returns the number of rows."""
        return publish_passed(self.generation, self.lease()).rows

    def check_held_deadlines(self, tell: Callable[[str], None]) -> list[dict[str, str]]:
        """Return notices for held slices near their deadline; raises AuditFailed ``slice.overdue`` after
        one."""
        return check_held_deadlines(self.generation.workspace, self.generation.pipeline.name, tell)

    def waiting(self) -> str:
        """Describe the passed rows that wait behind a held batch; empty when there are none."""
        waiting, name = self.generation.batches(("passed",)), self.generation.pipeline.name
        if not waiting:
            return ""
        rows = sum(batch.counts.staged for batch in waiting)
        held = self.generation.batches(("held",))[0].batch_id
        return (
            f"; waiting behind held batch {held}: {counted(rows, 'passed row')}: `drawdown release {name}"
            f" --why ...` or `drawdown discard {name} --why ...`"
        )


def not_passed(pipeline: Pipeline, verdict: Verdict) -> AuditFailed:
    """Return the error for a slice with verdict fail or error."""
    if pipeline.sink.publish == "direct":
        state, do = "is already visible (publish: direct)", "fix the data; later runs are audited again"
    elif verdict.outcome == "fail":
        state = "is not published"
        do = (
            f"`drawdown release {pipeline.name} --why ...` publishes the held rows as they are; or"
            f" `drawdown discard {pipeline.name} --why ...` drops them"
        )
    else:
        state, do = "is not published", "fix the expectation; the next run audits the same rows again"
    return AuditFailed(
        f"audit.{verdict.outcome}",
        f"the slice of {pipeline.name} {state}: {verdict.text}",
        where=verdict.batches,
        do=do,
    )
