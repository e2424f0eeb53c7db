"""The events of a pipeline's asset: every slice that became visible is in one of them.

Airflow keeps an asset event when the task that sends it succeeds, so only Airflow knows what was reported:
after a task died, was cleared or was marked by hand, only the events of its asset show it. What a run made
visible is in its record, written in one transaction with the batches, whatever started the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol, Self, get_args

from drawdown.held.decide import Choice
from drawdown.metastore import Metastore
from drawdown.metastore.operations.runs import PUBLISHED, REBUILD
from drawdown.metastore.records import Batch, Run

_REPORTED_OTHERWISE = {REBUILD, *get_args(Choice)}
"""Kinds of runs whose rows are reported by a decision: the swap, the release or the discard."""

_PAGE = 50
_CLOCKS_DIFFER = timedelta(days=1)
"""More than the clocks of Airflow's database and of the metastore can differ."""


class AssetEvent(Protocol):
    """One event, as Airflow gives it."""

    @property
    def timestamp(self) -> datetime: ...

    @property
    def extra(self) -> dict[str, Any] | None: ...


class AssetEvents(Iterable[AssetEvent], Protocol):
    """What a task's ``inlet_events[asset]`` is; `airflow.sdk` does not export its type."""

    def after(self, after: str) -> Self: ...

    def before(self, before: str) -> Self: ...

    def ascending(self, ascending: bool = True) -> Self: ...

    def limit(self, limit: int) -> Self: ...


@dataclass(frozen=True)
class News:
    """What runs made visible and no event has reported: the runs, in order, and their visible batches."""

    pipeline: str
    runs: tuple[Run, ...]
    batches: tuple[Batch, ...]

    @property
    def rows(self) -> int:
        return sum(batch.counts.staged for batch in self.batches)

    def as_event(self) -> dict[str, Any]:
        """Return the content of the asset event, which has the same size for any number of batches.

        ``run_id`` is the last run's: the next event begins after it. Batch ids and offsets are those of the
        newest generation.
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


def news_of(metastore: Metastore, pipeline: str, events: AssetEvents) -> News:
    """Return what drains of a pipeline, however started, made visible since the last event of a drain.

    Decisions about held slices and rebuilds report what they made visible themselves.
    """
    latest = next((event for event in newest_first(events) if _is_of_drain(_extra(event))), None)
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


def is_reported(run: Run, events: AssetEvents) -> bool:
    """Whether an event has reported a decision, a replay or a swap."""
    assert run.started_at is not None
    since = events.after((run.started_at - _CLOCKS_DIFFER).isoformat())
    return any(_extra(event).get("run_id") == run.run_id for event in since)


def _extra(event: AssetEvent) -> dict[str, Any]:
    return event.extra or {}


def _is_of_drain(extra: dict[str, Any]) -> bool:
    return "run_id" in extra and "batch_ids" in extra and "decision" not in extra


def newest_first(events: AssetEvents) -> Iterator[AssetEvent]:
    """Yield events page by page: a backfill has as many events as intervals."""
    page: Sequence[AssetEvent] = list(events.ascending(False).limit(_PAGE))
    while page:
        yield from page
        before = page[-1].timestamp - timedelta(microseconds=1)
        page = list(events.before(before.isoformat())) if len(page) == _PAGE else []


def _goes_on(metastore: Metastore, run: Run) -> bool:
    """Whether a run is active, by its lease: a dead run's state is "running" until the next run."""
    if run.state != "running":
        return False
    lease = metastore.holder_of(run.pipeline)
    return lease is not None and lease.run_id == run.run_id


def _visible(metastore: Metastore, runs: Sequence[Run]) -> tuple[Batch, ...]:
    """Return the batches that runs published and that are still visible, not undone by a rewind."""
    found: dict[tuple[int, int], Batch] = {}
    for run in runs:
        for generation, first, last in run.origin[PUBLISHED]:
            for batch in metastore.batches(run.pipeline, generation, ("published",), first_batch=first):
                if batch.batch_id <= last:
                    found[generation, batch.batch_id] = batch
    return tuple(found[key] for key in sorted(found))
