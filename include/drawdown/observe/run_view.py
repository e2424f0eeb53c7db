"""The page of a DAG run: what each of its tries did, batch by batch, and why it ended as it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drawdown.cost.bill import Bill, bill_of
from drawdown.held.decide import decisions_on
from drawdown.metastore.operations.runs import READING
from drawdown.metastore.records import Run, Verdict
from drawdown.observe.record import outcome_of, phases_of
from drawdown.observe.run_batches import BatchEntry, batch_entries
from drawdown.quality.data_docs import page_name
from drawdown.workspace import Workspace

BATCHES = 50
"""Batches of a run that the page shows: the last ones."""
_ORDER = "source_order"


@dataclass(frozen=True)
class JudgedSlice:
    """A verdict, and the name of its page among the Data Docs; "" for a slice that has none."""

    verdict: Verdict
    data_docs: str


@dataclass(frozen=True)
class RunView:
    """One run.

    Attributes:
        attempt: the try of the task that made it; None for a run of a command.
        batches: the last ones, in order; ``hidden`` counts those before them.
        decisions: what was decided about its slices, a sentence each.
    """

    run: Run
    attempt: int | None
    outcome: str
    seconds: float | None
    phases: dict[str, float]
    bill: Bill | None
    batches: Sequence[BatchEntry]
    hidden: int
    judged: Sequence[JudgedSlice]
    decisions: Sequence[str]

    @property
    def started_at(self) -> datetime:
        assert self.run.started_at is not None
        return self.run.started_at

    @property
    def is_fine(self) -> bool:
        """Whether nobody needs to look: it ended well and was not held."""
        return self.run.state in ("succeeded", "running") and self.run.verdict not in ("fail", "error")

    @property
    def aside(self) -> int:
        counts = self.run.counts
        return counts.malformed + counts.future + counts.quarantined


def run_view(workspace: Workspace, run: Run) -> RunView:
    """Return the view of one run.

    Raises:
        DrawdownError: the metastore cannot be read.
    """
    metastore = workspace.metastore
    batches, hidden = _batches(workspace, run)
    return RunView(
        run=run,
        attempt=run.origin.get("try_number"),
        outcome=outcome_of(run),
        seconds=(run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None,
        phases=phases_of(run),
        bill=bill_of(run.usage, run.counts.read) if run.usage else None,
        batches=batches,
        hidden=hidden,
        judged=[JudgedSlice(verdict, _docs(verdict)) for verdict in metastore.verdicts_of(run)],
        decisions=decisions_on(metastore, run),
    )


def _batches(workspace: Workspace, run: Run) -> tuple[list[BatchEntry], int]:
    if run.generation is None or run.kind not in READING:
        return [], 0
    metastore = workspace.metastore
    found = metastore.batches_of_run(run, BATCHES)
    fixed: dict[str, Any] = next(
        (
            each.fingerprint
            for each in metastore.generations(run.pipeline)
            if each.generation == run.generation
        ),
        {},
    )
    return batch_entries(run, found, fixed.get(_ORDER, ())), max(0, run.batches - len(found))


def _docs(verdict: Verdict) -> str:
    return "" if verdict.outcome == "empty" and not verdict.results else page_name(verdict)
