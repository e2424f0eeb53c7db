"""What is said of a pipeline before it runs: one verdict per finding; a drain raises the refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["refused", "warning", "allowed", "note"]


@dataclass(frozen=True)
class PlanVerdict:
    """One finding.

    Attributes:
        level: refused (nothing is started), warning (it runs, and this may surprise), allowed (a change that
            the checkpoint takes), note (good to know).
        id: stable name, ``<area>.<what>``.
        what: what was found, in one sentence, in the words of Spark's documents.
        do: the nearest thing that works.
        about: the operator, source, sink or key it is about.
    """

    level: Level
    id: str
    what: str
    do: str = ""
    about: str = ""
