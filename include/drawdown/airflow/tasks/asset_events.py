"""The events of a pipeline's asset: every slice that became visible is in one of them.

Airflow keeps an asset event when the task that carries it succeeds, so only Airflow knows what was reported.
A task that died, was cleared or was marked by hand shows in the events of its asset, not in a note of ours.
What a run made visible is in its record, noted in one transaction with the batches, whoever drained them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, get_args

from drawdown.held.decide import Choice
from drawdown.metastore import Metastore
from drawdown.metastore.operations.runs import PUBLISHED, REBUILD
from drawdown.metastore.records import Batch, Run

if TYPE_CHECKING:
    from airflow.sdk.execution_time.comms import AssetEventResult
    from airflow.sdk.execution_time.context import InletEventsAccessor

_REPORTED_OTHERWISE = {REBUILD, *get_args(Choice)}
"""Kinds of runs whose rows the decision about them tells: the swap, the release or the discard."""

_PAGE = 50
_CLOCKS_DIFFER = timedelta(days=1)
"""More than the clocks of Airflow's database and of the metastore do."""


@dataclass(frozen=True)
class News:
    """What runs made visible and no event has reported: the runs, in order, and the batches readers see."""

    pipeline: str
    runs: tuple[Run, ...]
    batches: tuple[Batch, ...]

    @property
    def rows(self) -> int:
        return sum(batch.counts.staged for batch in self.batches)

    def as_event(self) -> dict[str, Any]:
        """What the asset event carries: of constant size, however many batches there were.

        ``run_id`` is that of the last run: the next event begins behind it. Batch ids and offsets are those
        of the newest generation.
        """
        generation = self.batches[-1].generation
        newest = [batch for batch in self.batches if batch.generation == generation]
        first, last = newest[0], newest[-1]
        return {
            "pipeline": self.pipeline,
            "run_id": self.runs[-1].run_id,
            "generation": generation,
            "rows": self.rows,
            "batch_ids": [first.batch_id, last.batch_id],
            "offsets_from": first.offsets_from,
            "offsets_to": last.offsets_to,
            "verdict": last.verdict,
            "watermark": last.watermark.isoformat() if last.watermark else None,
        }


def news_of(metastore: Metastore, pipeline: str, events: InletEventsAccessor) -> News:
    """What drains of a pipeline, by whomever, made visible since the last event of a drain.

    What a decision made visible, about a held slice or about a rebuild, is reported by that.
    """
    latest = next((event for event in _newest_first(events) if _is_of_drain(_extra(event))), None)
    last = metastore.run(str(_extra(latest)["run_id"])) if latest is not None else None
    since = None if latest is None else last.started_at if last is not None else latest.timestamp
    behind = (since, last.run_id if last is not None else "")
    runs = tuple(
        run
        for run in metastore.runs_that_published(pipeline, since)
        if run.kind not in _REPORTED_OTHERWISE
        and (since is None or (run.started_at, run.run_id) > behind)
        and not _goes_on(metastore, run)
    )
    return News(pipeline, runs, _visible(metastore, runs))


def is_reported(run: Run, events: InletEventsAccessor) -> bool:
    """Whether an event has reported a decision, a replay or a swap."""
    assert run.started_at is not None
    since = events.after((run.started_at - _CLOCKS_DIFFER).isoformat())
    return any(_extra(event).get("run_id") == run.run_id for event in since)


def _extra(event: AssetEventResult) -> dict[str, Any]:
    return event.extra or {}


def _is_of_drain(extra: dict[str, Any]) -> bool:
    return "run_id" in extra and "batch_ids" in extra and "decision" not in extra


def _newest_first(events: InletEventsAccessor) -> Iterator[AssetEventResult]:
    """Page by page: a backfill has as many events as intervals."""
    page: Sequence[AssetEventResult] = list(events.ascending(False).limit(_PAGE))
    while page:
        yield from page
        before = page[-1].timestamp - timedelta(microseconds=1)
        page = list(events.before(before.isoformat())) if len(page) == _PAGE else []


def _goes_on(metastore: Metastore, run: Run) -> bool:
    """A watch publishes until it ends; a run that died says that it is running until the next one."""
    if run.state != "running":
        return False
    lease = metastore.holder_of(run.pipeline)
    return lease is not None and lease.run_id == run.run_id


def _visible(metastore: Metastore, runs: Sequence[Run]) -> tuple[Batch, ...]:
    """Of what they published; a rewind with its sink has taken back what is not there any more."""
    found: dict[tuple[int, int], Batch] = {}
    for run in runs:
        for generation, first, last in run.origin[PUBLISHED]:
            for batch in metastore.batches(run.pipeline, generation, ("published",), first_batch=first):
                if batch.batch_id <= last:
                    found[generation, batch.batch_id] = batch
    return tuple(found[key] for key in sorted(found))
