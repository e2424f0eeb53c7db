"""What a DAG run did to a pipeline, from the metastore: its run, verdict and batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drawdown.application import NOTHING_NEW
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Run, Verdict
from drawdown.spec import load_project


@contextmanager
def open_metastore(project_root: str) -> Iterator[Metastore]:
    """Open the metastore of the project at this root."""
    with Metastore.open(load_project(Path(project_root)).metastore_url) as metastore:
        yield metastore


def runs_of(metastore: Metastore, pipeline: str, dag_id: str, dag_run_id: str) -> list[Run]:
    """Return the runs of a pipeline that this DAG run started, every try, newest first.

    Runs that found nothing new are left out, so that running a task again after its success does not change
    the result of the first try.
    """
    found = metastore.runs_of_origin(_origin(dag_id, dag_run_id), pipeline=pipeline)
    return [run for run in found if run.stop_reason != NOTHING_NEW]


def runs_of_dag_run(metastore: Metastore, dag_id: str, dag_run_id: str) -> list[Run]:
    """Return all runs that a DAG run started, of every pipeline and every try, newest first."""
    return metastore.runs_of_origin(_origin(dag_id, dag_run_id))


def verdict_of(metastore: Metastore, runs: Iterable[Run]) -> Verdict | None:
    """Return the newest verdict of these runs (newest first); None without a slice or an audit.

    The last try may publish what an earlier try audited.
    """
    return next((found for run in runs if (found := metastore.verdict_of(run)) is not None), None)


def _origin(dag_id: str, dag_run_id: str) -> dict[str, str]:
    return {"dag_id": dag_id, "dag_run_id": dag_run_id}


def decision_event(metastore: Metastore, run: Run) -> dict[str, Any]:
    """Return the asset event of a release or discard; ``rows`` counts those that it made visible."""
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
    """The batches that one verdict covers, in order."""

    verdict: Verdict
    batches: tuple[Batch, ...]

    @classmethod
    def of(cls, metastore: Metastore, verdict: Verdict) -> Slice:
        found = metastore.batches(verdict.pipeline, verdict.generation, first_batch=verdict.first_batch)
        return cls(verdict, tuple(b for b in found if b.batch_id <= verdict.last_batch))

    @property
    def unpublished(self) -> list[int]:
        """Return the ids of its batches that readers cannot see."""
        return [batch.batch_id for batch in self.batches if batch.status != "published"]

    @property
    def rows(self) -> int:
        return sum(batch.counts.staged for batch in self.batches)
