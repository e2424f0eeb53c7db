"""The fleet: all pipelines that somebody may see, worst first, by filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from drawdown.fleet.standing import WORST_FIRST, State
from drawdown.metastore import Metastore
from drawdown.observe.figures import Glance, Seen, glance, look
from drawdown.observe.filters import Choices, Filter


@dataclass(frozen=True)
class Fleet:
    """One page of pipelines.

    Attributes:
        shown: the pipelines of this page, worst first, then by name.
        found: how many pipelines the filter takes, on all pages.
        states: how many pipelines of each state the rest of the filter takes.
        choices: the values that the filters offer, by filter.
        oldest: when the oldest of the figures on this page were recorded.
    """

    shown: Sequence[Seen]
    found: int
    states: dict[State, int]
    choices: dict[str, list[str]]

    @property
    def oldest(self) -> datetime | None:
        return min((seen.recorded_at for seen in self.shown), default=None)


PAGE = 50
"""Pipelines on a page."""


def fleet(metastore: Metastore, dags: Collection[str] | None, wanted: Filter, page: int = 1) -> Fleet:
    """Return one page of the pipelines whose DAG is among these. Only what it shows is read whole.

    Args:
        dags: the ids of the DAGs that may be seen; None: all.
    """
    states, taken, choices = Counter[State](), list[tuple[int, str]](), Choices()
    any_state = replace(wanted, state="")
    # Of a thousand pipelines nothing is kept but names, so that no garbage collection has to look at them.
    for seen in glance(metastore):
        if dags is not None and seen.figures.dag_id not in dags:
            continue
        choices.add(seen)
        if any_state.takes(seen):
            states[seen.finding.state] += 1
            if wanted.state in ("", seen.finding.state):
                taken.append(_order(seen))
    first = (max(page, 1) - 1) * PAGE
    shown = look(metastore, [name for _, name in sorted(taken)[first : first + PAGE]])
    return Fleet(
        sorted(shown, key=_order),
        len(taken),
        {state: states[state] for state in WORST_FIRST if states[state]},
        choices.offered,
    )


def _order(seen: Glance) -> tuple[int, str]:
    """Worst first, then by name."""
    return WORST_FIRST.index(seen.finding.state), seen.pipeline
