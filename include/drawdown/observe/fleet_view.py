"""The fleet: all pipelines that somebody may see, worst first, by filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from drawdown.fleet.standing import WORST_FIRST, State
from drawdown.metastore import Metastore
from drawdown.observe.figures import Glance, Seen, glance, look


@dataclass(frozen=True)
class Filter:
    """What is looked for; an empty value takes all. ``text`` is a part of the name."""

    state: str = ""
    group: str = ""
    owner: str = ""
    tag: str = ""
    text: str = ""

    def takes(self, seen: Glance) -> bool:
        figures = seen.figures
        return (
            self.state in ("", seen.finding.state)
            and self.group in ("", figures.group or "")
            and self.owner in ("", figures.owner)
            and (not self.tag or self.tag in figures.tags)
            and self.text.lower() in figures.pipeline.lower()
        )

    @property
    def given(self) -> dict[str, str]:
        """Return the values that are not empty, by name."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name))}


@dataclass(frozen=True)
class Fleet:
    """One page of pipelines.

    Attributes:
        shown: the pipelines of this page, worst first, then by name.
        found: how many pipelines the filter takes, on all pages.
        states: how many pipelines there are of each state, whatever the filter.
        groups: the values that the filters offer; ``owners`` and ``tags`` likewise.
        oldest: when the oldest of the figures on this page were recorded.
    """

    shown: Sequence[Seen]
    found: int
    states: dict[State, int]
    groups: Sequence[str]
    owners: Sequence[str]
    tags: Sequence[str]

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
    states, taken = Counter[State](), list[tuple[int, str]]()
    groups, owners, tags = set[str](), set[str](), set[str]()
    # Of a thousand pipelines nothing is kept but names, so that no garbage collection has to look at them.
    for seen in glance(metastore):
        figures = seen.figures
        if dags is not None and figures.dag_id not in dags:
            continue
        states[seen.finding.state] += 1
        groups.add(figures.group or "")
        owners.add(figures.owner)
        tags.update(figures.tags)
        if wanted.takes(seen):
            taken.append(_order(seen))
    first = (max(page, 1) - 1) * PAGE
    shown = look(metastore, [name for _, name in sorted(taken)[first : first + PAGE]])
    return Fleet(
        sorted(shown, key=_order),
        len(taken),
        {state: states[state] for state in WORST_FIRST if states[state]},
        *(sorted(found - {""}) for found in (groups, owners, tags)),
    )


def _order(seen: Glance) -> tuple[int, str]:
    """Worst first, then by name."""
    return WORST_FIRST.index(seen.finding.state), seen.pipeline
