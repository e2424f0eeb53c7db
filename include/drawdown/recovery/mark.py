"""The mark that a command with several steps leaves in a checkpoint until it has finished."""

from __future__ import annotations

from drawdown.checkpoint import MARKS
from drawdown.fault_points import durable
from drawdown.workspace import Generation


def mark(generation: Generation, name: str, given: str) -> None:
    """Set the mark: from now on no run starts, and its refusal names the command.

    Args:
        name: one of MARKS.
        given: the command's arguments after the pipeline's name.
    """
    with durable("recovery.mark"):
        generation.storage.write_atomic(f"{generation.path}/{name}", given.encode())


def unmark(generation: Generation) -> None:
    """Remove the mark: the checkpoint is consistent, at least as far back as any interrupted command asked
    for."""
    for name in MARKS:
        generation.storage.delete(f"{generation.path}/{name}")
