"""What the metastore says a DAG run did to a pipeline: its run, verdict and batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawdown.application import NOTHING_NEW
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.spec import load_project

_RECENT = 50
"""Runs and verdicts looked through: a DAG run is audited right after it was drained."""


@contextmanager
def open_metastore(project_root: str) -> Iterator[Metastore]:
    """The metastore of the project at this root."""
    with Metastore.open(load_project(Path(project_root)).metastore_url) as metastore:
        yield metastore


def run_of(metastore: Metastore, pipeline: str, dag_id: str, dag_run_id: str) -> Run | None:
    """The last run of a pipeline that this DAG run asked for; None if its drain never came to it.

    A task that is run again after it succeeded changes nothing of what the first try came to.
    """
    for run in metastore.runs(pipeline, limit=_RECENT):
        if run.stop_reason == NOTHING_NEW:
            continue
        if run.origin.get("dag_id") == dag_id and run.origin.get("dag_run_id") == dag_run_id:
            return run
    return None


def runs_of_dag_run(metastore: Metastore, dag_id: str, dag_run_id: str) -> list[Run]:
    """All runs that a DAG run asked for, every pipeline and every try, newest first."""
    recent = metastore.runs(limit=_RECENT * 10)
    return [
        r for r in recent if r.origin.get("dag_id") == dag_id and r.origin.get("dag_run_id") == dag_run_id
    ]


def verdict_of(metastore: Metastore, run: Run) -> Verdict | None:
    """What the run's audit said; None when there was no slice, or no audit."""
    return next((v for v in metastore.verdicts(run.pipeline, limit=_RECENT) if v.run_id == run.run_id), None)


def decision_event(metastore: Metastore, run: Run) -> dict[str, Any]:
    """What the asset event of a release or discard carries; ``rows`` are those that became visible by it."""
    first, last = run.origin["batches"]
    assert run.generation is not None
    decided = metastore.batches(run.pipeline, run.generation, first_batch=first)
    decided = [batch for batch in decided if batch.batch_id <= last]
    return {
        "pipeline": run.pipeline,
        "run_id": run.run_id,
        "generation": run.generation,
        "rows": run.counts.published,
        "batch_ids": [first, last],
        "offsets_from": decided[0].offsets_from,
        "offsets_to": decided[-1].offsets_to,
        "verdict": "fail",
        "decision": run.kind,
        "by": run.origin["by"],
        "why": run.origin["why"],
    }


@dataclass(frozen=True)
class Slice:
    """The batches one verdict judged, in order."""

    verdict: Verdict
    batches: tuple[Batch, ...]

    @classmethod
    def of(cls, metastore: Metastore, verdict: Verdict) -> Slice:
        found = metastore.batches(verdict.pipeline, verdict.generation, first_batch=verdict.first_batch)
        return cls(verdict, tuple(b for b in found if b.batch_id <= verdict.last_batch))

    @property
    def unpublished(self) -> list[int]:
        """Ids of its batches that readers cannot see."""
        return [batch.batch_id for batch in self.batches if batch.status != "published"]

    @property
    def rows(self) -> int:
        return sum(batch.counts.staged for batch in self.batches)

    def as_event(self) -> dict[str, Any]:
        """What the asset event carries: of constant size, however many batches there were."""
        first, last = self.batches[0], self.batches[-1]
        return {
            "pipeline": self.verdict.pipeline,
            "run_id": self.verdict.run_id,
            "generation": self.verdict.generation,
            "rows": self.rows,
            "batch_ids": [first.batch_id, last.batch_id],
            "offsets_from": first.offsets_from,
            "offsets_to": last.offsets_to,
            "verdict": self.verdict.outcome,
            "watermark": last.watermark.isoformat() if last.watermark else None,
        }
