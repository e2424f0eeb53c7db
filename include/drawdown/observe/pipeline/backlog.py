"""What waited at a pipeline's sources over time, and how long the rest takes at the rate of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from drawdown.metastore.records import Batch, Run, SeenBacklog
from drawdown.sources.findings import backlog_size

_BY_ROWS = ("offsets", "rows")
"""Units of a backlog whose progress is counted in rows read."""


@dataclass(frozen=True)
class BacklogTrend:
    """The backlog of one source.

    Attributes:
        seen: when somebody looked, and how much waited then, oldest first.
        per_second: how much of it runs read for each second of their queries; None when that is unknown.
        measured: "today", or "the last runs" when none ended today.
    """

    source: str
    unit: str
    seen: Sequence[tuple[datetime, int]]
    per_second: float | None
    measured: str

    @property
    def seconds_to_empty(self) -> float | None:
        """How long a query takes to read what waited at the last look."""
        if not self.seen or not self.per_second:
            return None
        return self.seen[-1][1] / self.per_second


def backlog_trends(
    looks: Sequence[SeenBacklog], runs: Sequence[Run], batches: Sequence[Batch], now: datetime
) -> list[BacklogTrend]:
    """Return the trend of each source, by name.

    Args:
        looks: newest first.
        runs: newest first; ``batches``: those that they have read.
    """
    seen: dict[tuple[str, str], list[tuple[datetime, int]]] = {}
    for look in reversed(looks):
        for source, found in look.by_source.items():
            size = backlog_size(found)
            if size is not None:
                seen.setdefault((source, size[1]), []).append((look.seen_at, size[0]))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = [run for run in runs if run.ended_at is not None and run.ended_at >= midnight and _seconds(run)]
    timed = {run.run_id: _seconds(run) for run in (today or runs)}
    measured = "today" if today else "the last runs"
    return [
        BacklogTrend(source, unit, found, _rate(source, unit, timed, batches), measured)
        for (source, unit), found in sorted(seen.items())
    ]


def _rate(source: str, unit: str, timed: Mapping[str, float], batches: Sequence[Batch]) -> float | None:
    """The amount of one source that these runs read for each second of their queries."""
    key = "read" if unit in _BY_ROWS else unit
    parts = [
        (batch.run_id, batch.by_source[source][key])
        for batch in batches
        if batch.run_id in timed and key in batch.by_source.get(source, {})
    ]
    amount, seconds = sum(each for _, each in parts), sum(timed[run_id] for run_id in {r for r, _ in parts})
    return amount / seconds if amount and seconds else None


def _seconds(run: Run) -> float:
    return (run.phases or {}).get("query", 0) / 1e6
