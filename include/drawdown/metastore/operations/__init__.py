"""What the metastore does, one module per kind of record; functions work in the caller's transaction."""

from drawdown.metastore.operations import (
    batches,
    changes,
    checkpoints,
    claims,
    decisions,
    generations,
    leases,
    moving,
    names,
    read_files,
    runs,
    verdicts,
)

__all__ = [
    "batches", "changes", "checkpoints", "claims", "decisions", "generations", "leases", "moving", "names",
    "read_files", "runs", "verdicts",
]  # fmt: skip
