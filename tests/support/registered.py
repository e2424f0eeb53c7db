"""Entries of the register of changes for tests that call a target themselves."""

from __future__ import annotations

from drawdown.metastore.records import Change


def change(epoch: int = 1, *, lease: str = "tests", batches: list[int] | None = None) -> Change:
    """A publish of these batches that is under way."""
    scope = {"batches": batches} if batches else {}
    return Change(f"change-{epoch}", "tests", "output", 1, "publish", f"run-{epoch}", lease, epoch, scope)
