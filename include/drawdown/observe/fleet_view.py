"""The fleet: all pipelines that somebody may see, worst first, by filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from drawdown.fleet.standing import WORST_FIRST, State
from drawdown.observe.figures import Seen


@dataclass(frozen=True)
class Filter:
    """What is looked for; an empty value takes all. ``text`` is a part of the name."""

    state: str = ""
    group: str = ""
    owner: str = ""
    tag: str = ""
    text: str = ""

    def takes(self, seen: Seen) -> bool:
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


def fleet(all_seen: Iterable[Seen], dags: Collection[str] | None, wanted: Filter, page: int = 1) -> Fleet:
    """Return one page of the pipelines whose DAG is among these.

    Args:
        dags: the ids of the DAGs that may be seen; None: all.
    """
    visible = [seen for seen in all_seen if dags is None or seen.figures.dag_id in dags]
    states = Counter(seen.finding.state for seen in visible)
    taken = sorted(
        (seen for seen in visible if wanted.takes(seen)),
        key=lambda seen: (WORST_FIRST.index(seen.finding.state), seen.pipeline),
    )
    first = (max(page, 1) - 1) * PAGE
    return Fleet(
        taken[first : first + PAGE],
        len(taken),
        {state: states[state] for state in WORST_FIRST if states[state]},
        sorted({seen.figures.group for seen in visible if seen.figures.group}),
        sorted({seen.figures.owner for seen in visible if seen.figures.owner}),
        sorted({tag for seen in visible for tag in seen.figures.tags}),
    )
