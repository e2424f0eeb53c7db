"""The figures of one pipeline: all that the fleet page, metrics and alerts say of it, as recorded last.

They are one row of the metastore, so that a page over 1,000 pipelines is one read. What changes with time
alone (stale, running, died) is not in them: `Seen` adds the time and the lease. Where only the state of each
pipeline is needed, a `Glance` reads the `Essentials` and leaves the rest as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from drawdown.fleet.freshness import is_late
from drawdown.fleet.standing import Basis, Finding, Holder, State, held_by, stale, worst
from drawdown.metastore import Metastore
from drawdown.metastore.records import RecordedFigures, SeenLease
from drawdown.observe.signs import signs


class _Recorded(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SourceBacklog(_Recorded):
    """The backlog of one source.

    ``unit``: files, offsets, versions or rows; ``oldest``: when the oldest unread of them arrived;
    ``headroom``: seconds until the broker's retention deletes it. None where it is not known.
    """

    source: str
    amount: int
    unit: str
    bytes: int | None = None
    oldest: datetime | None = None
    headroom: float | None = None


class Held(_Recorded):
    """The slices that wait for a decision: how many, their rows, and the first one's batches and term."""

    slices: int
    rows: int
    batches: str
    since: datetime
    ends: datetime


class RunBar(_Recorded):
    """One of the last runs: its outcome is its verdict, or its state when it was not judged."""

    run_id: str
    started_at: datetime
    outcome: str


class LastRun(_Recorded):
    """The newest run that reads.

    ``set_aside``: rows that were malformed, in the future or refused by a rule. ``phases``: seconds by phase;
    ``start`` is Spark's, of its application.
    """

    run_id: str
    state: str
    verdict: str | None
    stop_reason: str | None
    error_id: str | None
    started_at: datetime
    ended_at: datetime | None
    read: int | None
    published: int | None
    set_aside: int | None = None
    late: int | None = None
    origin: dict[str, Any]
    phases: dict[str, float]
    state_rows: int | None = None
    state_bytes: int | None = None


class Bounds(_Recorded):
    """What `alerts:` of the spec allows; durations in seconds. Read by drawdown.observe.signs."""

    lagging_after: float | None = None
    retention_left: float = 6 * 3_600
    quarantined_rows: int = 100


class WaitingRebuild(_Recorded):
    """A rebuild that was compared and waits for a decision; ``since``: when it began."""

    generation: int
    since: datetime


class Essentials(_Recorded):
    """What the state of a pipeline and the filters of pages rest on; durations are seconds.

    ``dag_id``: of the DAG that drains it. ``lasting``: findings by what they rest on, see `worst`.
    ``since``: when rows became visible last, or the start of the first run. ``promise``: `freshness:`.
    ``bounds``: `alerts:`. ``backlog``: by the last look, at ``backlog_at``. ``inputs``, ``outputs``,
    ``reads``, ``writes``: see drawdown.fleet.lineage.Connections.
    """

    pipeline: str
    dag_id: str
    group: str | None = None
    owner: str = ""
    tags: tuple[str, ...] = ()
    lasting: dict[Basis, Finding]
    since: datetime | None = None
    promise: float | None = None
    bounds: Bounds = Bounds()
    last: LastRun | None = None
    held: Held | None = None
    rebuild: WaitingRebuild | None = None
    backlog: tuple[SourceBacklog, ...] = ()
    backlog_at: datetime | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    reads: dict[str, str] = {}
    writes: dict[str, str] = {}


class Figures(Essentials):
    """What is recorded of one pipeline; times are UTC, durations seconds.

    ``watermark``: the last known; ``newest_event``: the greatest event time that was read. ``totals``:
    rows of all runs that began until ``totals_until``, but for ``totals_open``, which had not ended.
    ``cost``: by currency, decimal text, of runs since ``cost_since``. ``rows_per_second``: read, while
    queries ran, over the last runs.
    """

    published_at: datetime | None = None
    bars: tuple[RunBar, ...] = ()
    watermark: datetime | None = None
    newest_event: datetime | None = None
    totals: dict[str, int] = {}
    totals_until: datetime | None = None
    totals_open: tuple[str, ...] = ()
    cost: dict[str, str] = {}
    cost_since: datetime | None = None
    rows_per_second: float | None = None


@dataclass(frozen=True)
class Glance:
    """The essentials as they are seen now: with their age, and what time and the lease add."""

    figures: Essentials
    recorded_at: datetime
    now: datetime
    lease: SeenLease | None

    @property
    def pipeline(self) -> str:
        return self.figures.pipeline

    @property
    def holder(self) -> Holder:
        if self.lease is None:
            return "none"
        return "active" if self.lease.in_force else "dead"

    @property
    def age(self) -> timedelta | None:
        """For how long readers have waited for a publish; None when nothing is due."""
        return None if self.figures.since is None else self.now - self.figures.since

    @property
    def is_late(self) -> bool:
        """Whether `freshness:` is broken."""
        promise = self.figures.promise
        return is_late(self.age, None if promise is None else timedelta(seconds=promise))

    @cached_property
    def finding(self) -> Finding:
        """The worst that can be said now."""
        who = "" if self.lease is None else held_by(self.lease.holder, self.lease.since)
        return worst(self.pipeline, self.figures.lasting, self.signs, self.holder, who)

    @cached_property
    def signs(self) -> dict[State, Finding]:
        """What the figures and the clock say, by state."""
        found = signs(self)
        if self.is_late:
            found["stale"] = stale(self.pipeline)
        return found

    def headroom(self, waiting: SourceBacklog) -> float | None:
        """Return the seconds for which the broker still keeps what waits; None where nothing limits it."""
        seen_at = self.figures.backlog_at
        if waiting.headroom is None or not waiting.amount:
            return None
        passed = 0.0 if seen_at is None else max((self.now - seen_at).total_seconds(), 0.0)
        return max(waiting.headroom - passed, 0.0)


@dataclass(frozen=True)
class Seen(Glance):
    """All figures as they are seen now."""

    figures: Figures


def look(metastore: Metastore, pipelines: list[str] | None = None) -> list[Seen]:
    """Return the figures of these pipelines, or of all that are recorded, by name: two reads in all."""
    now, leases = metastore.figures.leases()
    return [
        Seen(figures, recorded.recorded_at, now, leases.get(figures.pipeline))
        for recorded, figures in _read(metastore, Figures, pipelines)
    ]


def glance(metastore: Metastore) -> Iterator[Glance]:
    """Yield the essentials of all pipelines, by name: as `look`, in a tenth of the time."""
    now, leases = metastore.figures.leases()
    for recorded, figures in _read(metastore, Essentials):
        yield Glance(figures, recorded.recorded_at, now, leases.get(figures.pipeline))


_Kind = TypeVar("_Kind", bound=Essentials)


def _read(
    metastore: Metastore, kind: type[_Kind], pipelines: list[str] | None = None
) -> Iterator[tuple[RecordedFigures, _Kind]]:
    """Yield what this version of the program can read: of what another one recorded, it records again."""
    for recorded in metastore.figures.read(pipelines):
        try:
            # From the text at once: with objects in between, garbage collection costs most of the time.
            figures = kind.model_validate_json(recorded.content)
        except ValidationError:
            continue
        yield recorded, figures
