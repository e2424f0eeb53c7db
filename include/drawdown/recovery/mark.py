"""The mark that a command of several steps leaves in a checkpoint, until it has come to its end."""

from __future__ import annotations

from drawdown.checkpoint import MARKS
from drawdown.fault_points import durable
from drawdown.workspace import Generation


def mark(generation: Generation, name: str, given: str) -> None:
    """From here on no run starts, and its refusal names the command.

    Args:
        name: one of MARKS.
        given: what the command was given behind the pipeline's name.
    """
    with durable("recovery.mark"):
        generation.storage.write_atomic(f"{generation.path}/{name}", given.encode())


def unmark(generation: Generation) -> None:
    """The checkpoint is whole: it has gone back at least as far as any command that was cut off wanted."""
    for name in MARKS:
        generation.storage.delete(f"{generation.path}/{name}")
