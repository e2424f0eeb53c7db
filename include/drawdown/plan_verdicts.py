"""Findings about a pipeline before it runs, one verdict each; a drain raises the refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["refused", "warning", "allowed", "note"]


@dataclass(frozen=True)
class PlanVerdict:
    """One finding.

    Attributes:
        level: refused (nothing is started), warning (it runs, and this may surprise), allowed (a change that
            that fits the checkpoint), note (good to know).
        id: stable name, ``<area>.<what>``.
        what: what was found, in one sentence, in the words of Spark's documents.
        do: the nearest alternative that works.
        about: the operator, source, sink or key it is about.
    """

    level: Level
    id: str
    what: str
    do: str = ""
    about: str = ""
