"""The slice of a run: every committed batch that nobody has judged, audited, then published or held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from drawdown.engine.query import Query
from drawdown.engine.sinks import Sink
from drawdown.errors import AuditFailed
from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, Lease, Verdict
from drawdown.publishing import publish_passed, publish_quarantine
from drawdown.publishing.held_terms import mind_terms
from drawdown.spec import Pipeline, Project


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
class SliceDesk:
    """Audits and publishes what a run's batches have staged; steps 9 and 10 of a drain.

    Attributes:
        lease: asks for the current lease, and raises when it was lost.
    """

    project: Project
    pipeline: Pipeline
    metastore: Metastore
    auditor: Auditor
    checkpoint: Checkpoint
    sink: Sink
    query: Query
    lease: Callable[[], Lease]

    def audit(self, run_id: str) -> Verdict:
        """Judge every committed batch that nobody has judged; ``empty`` when there is none."""
        generation = self.checkpoint.generation
        slice_ = self.metastore.batches(self.pipeline.name, generation, statuses=("committed",))
        ids = [batch.batch_id for batch in slice_]
        # In complete mode each batch stages the whole result; a table is given the last one only.
        of_a_table = self.pipeline.sink.readable and self.pipeline.sink.mode == "complete"
        judged = slice_[-1:] if of_a_table else slice_
        rows = sum(batch.counts.staged for batch in judged)
        files = self.metastore.staged_files(
            self.pipeline.name, generation, [batch.batch_id for batch in judged], table="output"
        )
        frame = self.sink.rows_of(self.query.session, self.query.schema, files)
        said = self.auditor(frame, self.pipeline, rows)
        verdict = Verdict(
            self.pipeline.name,
            generation,
            run_id,
            first_batch=min(ids, default=-1),
            last_batch=max(ids, default=-1),
            outcome=said.outcome,
            results=said.results,
            text=said.text,
            measures=said.measures,
        )
        if ids:
            publish_quarantine(self.metastore, self.lease(), self.project, self.pipeline, slice_)
            with durable("verdict.note"):
                self.metastore.record_verdict(self.lease(), verdict)
        return verdict

    def publish(self) -> int:
        """Make visible what has passed and no held batch stands before; returns its rows."""
        return publish_passed(self.metastore, self.lease(), self.project, self.pipeline, self.checkpoint).rows

    def mind_terms(self, tell: Callable[[str], None]) -> list[dict[str, str]]:
        """Notices of held slices whose term ends; raises AuditFailed ``slice.overdue`` when one is over."""
        return mind_terms(self.metastore, self.project, self.pipeline.name, tell)

    def waiting(self) -> str:
        """What passed and is not published, because a batch before it is held; empty when there is none."""
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


def not_passed(pipeline: Pipeline, verdict: Verdict) -> AuditFailed:
    """The error of a run whose slice was judged fail or error."""
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
