"""Two ways to do the same thing, measured in turns: A B A B, so that a busy machine is as busy for both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

PAIRS = 5

T = TypeVar("T")


@dataclass(frozen=True)
class Comparison:
    """What Drawdown took beside what the rival took; one entry a turn.

    Attributes:
        what: that was done.
        rival_is: who else did it, and how.
        unit: of the figures: "s" (wall clock), "core-s" (user and system time of all processes), "MB",
            "jobs" (of Spark).
        wanted: what the median ratio is meant to be at most, or None where nothing was promised.
    """

    what: str
    rival_is: str
    unit: str
    ours: list[float]
    rival: list[float]
    wanted: float | None = None

    @property
    def ratio(self) -> float:
        """Median over the turns of ours divided by the rival's."""
        return median(ours / rival for ours, rival in zip(self.ours, self.rival, strict=True))

    @property
    def is_as_wanted(self) -> bool:
        return self.wanted is None or self.ratio <= self.wanted

    def __str__(self) -> str:
        wanted = f" (wanted: at most {self.wanted:.2f})" if self.wanted is not None else ""
        return (
            f"{self.what}: {spread(self.ours)} {self.unit}; {self.rival_is}: {spread(self.rival)}"
            f" {self.unit}; ratio {shown(self.ratio)}{wanted}"
        )


def spread(figures: list[float]) -> str:
    """``median (least to most)``."""
    if len(figures) == 1:
        return f"{figures[0]:,.0f}"
    return f"{shown(median(figures))} ({shown(min(figures))} to {shown(max(figures))})"


def shown(figure: float) -> str:
    """With two digits behind the point; more of a small one, none of a large one."""
    digits = 0 if figure >= 100 else 2 if figure >= 0.1 else 4
    return f"{figure:,.{digits}f}"


def in_turns(
    ours: Callable[[int], T], rival: Callable[[int], T], *, warm_up: bool = True
) -> list[tuple[T, T]]:
    """Each called with 0, 1, …; the first pair warms the machine's caches and is not returned.

    Args:
        warm_up: False where what was measured before has warmed them.
    """
    first = 0 if warm_up else 1
    return [(ours(turn), rival(turn)) for turn in range(first, PAIRS + 1)][1 - first :]
