"""What is wrong with one file of a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Part = Literal["metadata", "offsets", "commits", "sources", "state", "sink"]
Kind = Literal["torn", "checksum", "missing", "foreign"]


@dataclass(frozen=True)
class CheckpointFault:
    """One finding of a verification.

    Attributes:
        kind: torn (it cannot be read completely), checksum (it can, but Hadoop's checksum beside it does not
            match), missing, or foreign (it belongs to another query).
        path: relative to the storage root.
        what: the cause, in one sentence; for state with its operator, partition, store and version.
        needed: whether the next run reads it. Other files are history, or will be written again.
        number: the batch of a log of batches, the entry of a log of files, the version of a state file.
    """

    part: Part
    kind: Kind
    path: str
    what: str
    needed: bool
    number: int | None = None

    @property
    def entry(self) -> int:
        """Return `number`. Raises LookupError for a file without one."""
        if self.number is None:
            raise LookupError(f"{self.path} has no number")
        return self.number
