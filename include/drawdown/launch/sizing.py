"""How many workers a run gets: the profile's number, or as many as the backlog needs, within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

from drawdown.spec import SizedCluster

Backlogs = Iterable[Mapping[str, Mapping[str, Any]]]
"""One per pipeline: the backlog of each streaming source, see plan.findings.Finding."""


def workers_for(profile: SizedCluster, backlogs: Backlogs | None) -> int:
    """Return how many workers the backlog of these pipelines needs.

    The backlog is added up per unit over all sources, and the unit that needs most workers decides. A source
    whose backlog has none of the units that the profile names gets `max`: its size is unknown.

    Args:
        backlogs: None for a run that reads something else, such as a replay: its size is unknown too.
    """
    sizing = profile.workers
    if isinstance(sizing, int):
        return sizing
    if backlogs is None:
        return sizing.max
    amounts = sizing.each.amounts
    waiting = dict.fromkeys(amounts, 0)
    for found in (source for backlog in backlogs for source in backlog.values()):
        counted = {unit: _sum(found[unit]) for unit in amounts if unit in found}
        if not counted:
            return sizing.max
        for unit, size in counted.items():
            waiting[unit] += size
    asked = max(ceil(waiting[unit] / amount) for unit, amount in amounts.items())
    return min(max(asked, sizing.min), sizing.max)


def _sum(waiting: int | Mapping[str, int]) -> int:
    return sum(waiting.values()) if isinstance(waiting, Mapping) else int(waiting)
