"""Refuses a run of a pipeline that collides with one that ran first, or reaches what is not its own."""

from __future__ import annotations

from drawdown.spec.loader import refusal_beside_others
from drawdown.workspace import Generation


def refuse_beside_others(generation: Generation) -> None:
    """Raise the SpecError that `drawdown validate` shows and that its DAG is broken with."""
    error = refusal_beside_others(generation.project, generation.pipeline.name)
    if error is not None:
        raise error
