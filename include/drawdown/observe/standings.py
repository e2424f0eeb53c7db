"""How pipelines stand for `drawdown status`: records read now, and the signs in what was recorded last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from drawdown.fleet.standing import Standing, standings, worst_first
from drawdown.observe.figures import look
from drawdown.workspace import Workspace


def standings_with_signs(workspace: Workspace, names: Sequence[str]) -> list[Standing]:
    """Return how these pipelines stand, worst first, in the words of the fleet page."""
    signs = {seen.pipeline: seen.signs for seen in look(workspace.metastore, list(names))}
    found = standings(workspace, names)
    return worst_first(replace(each, signs=signs.get(each.pipeline, {})) for each in found)
