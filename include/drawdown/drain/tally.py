"""What a run has found out so far: its record is closed with this, whichever step it ends in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from drawdown.drain.progress import RunProgress
from drawdown.metastore.records import Batch, Counts
from drawdown.publishing.staging import Staging
from drawdown.sources.files.spark_batch_files import BatchFiles
from drawdown.workspace import Generation


@dataclass
class Tally:
    """One run's; empty at its beginning.

    Attributes:
        generation: None while the run may still be refused; its checkpoint is None until it is noted.
        committed: the last batch in Spark's commit log, as far as this run has seen it.
        phases: microseconds by phase, see `Run.phases`.
    """

    generation: Generation | None = None
    staging: Staging | None = None
    batch_files: BatchFiles | None = None
    progress: RunProgress | None = None
    committed: int | None = None
    published: int = 0
    outcome: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, int] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the time of what is done inside to a phase of the run; a watch judges more than once."""
        begun = time.monotonic_ns()
        try:
            yield
        finally:
            self.phases[phase] = self.phases.get(phase, 0) + (time.monotonic_ns() - begun) // 1_000

    def counts(self, committed: int | None) -> tuple[int, Counts]:
        """Return the number of committed batches of this run, and their counts."""
        done = [each for each in self.batches if committed is not None and each.batch_id <= committed]
        return len(done), replace(
            sum((each.counts for each in done), Counts()),
            late_groups=self.progress.late_groups if self.progress else 0,
            duplicates=self.progress.duplicates if self.progress else 0,
            published=self.published,
        )
