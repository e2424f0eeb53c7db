"""The files that a source's committed batches have read, from the newest on, as far back as a decision needs.

The log of seen files holds every file that a source has ever had. With a million of them, reading it whole
takes longer than everything else before a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from drawdown.checkpoint import SeenFile


class ReadLog:
    """What is known by now; `read_more` and `read_all` read further back.

    Args:
        blocks: the files of the log, the newest block first, each read when it is asked for.
    """

    def __init__(self, blocks: Iterable[Sequence[SeenFile]]) -> None:
        self._blocks = iter(blocks)
        self.files: list[SeenFile] = []

    def read_more(self) -> bool:
        """Read the next older block; return whether there was one. Raises RefusedError for a damaged log."""
        block = next(self._blocks, None)
        self.files += block or ()
        return block is not None

    def read_all(self) -> None:
        """Read the whole log. Raises RefusedError for a damaged log."""
        while self.read_more():
            pass

    @property
    def youngest_ms(self) -> int:
        """Return the time of the youngest file known by now, milliseconds since 1970 UTC; 0 for none."""
        return max((file.timestamp_ms for file in self.files), default=0)
