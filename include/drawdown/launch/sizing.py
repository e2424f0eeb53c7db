"""How many workers a run gets: as many as the profile says, or as the backlog asks for, within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any

from drawdown.spec import SizedCluster

Backlogs = Iterable[Mapping[str, Mapping[str, Any]]]
"""One a pipeline: per streaming source what waits there, see plan.findings.Finding."""


def workers_for(profile: SizedCluster, backlogs: Backlogs | None) -> int:
    """Workers for what waits at these pipelines.

    What waits is added up per unit over all sources, and the unit that asks for most decides. A source whose
    backlog has none of the units that the profile names asks for `max`: it may be anything.

    Args:
        backlogs: None for what reads something else, as a replay does: that may be anything too.
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
