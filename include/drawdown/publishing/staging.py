"""Registers what a run stages: one change per table, begun before its first file and closed at the end."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from drawdown.errors import DrawdownError
from drawdown.metastore.records import Change, Lease
from drawdown.publishing.clean_up import remove_unnoted
from drawdown.sinks.stage import SinkStage, StagingSink
from drawdown.workspace import Generation


@dataclass(frozen=True)
class Staging:
    """The changes of one run, one per table.

    Attributes:
        first_batch: the first batch that this run can write.
    """

    generation: Generation
    changes: Sequence[Change]
    first_batch: int

    @classmethod
    def begin(
        cls, generation: Generation, lease: Lease, sinks: Sequence[SinkStage], first_batch: int
    ) -> Staging:
        """Begin a change for every sink that stages, and point the sink at the change's folder.

        Raises:
            RefusedError: ``lease.lost``.
        """
        begun = []
        for sink in sinks:
            if isinstance(sink, StagingSink):
                place = f"{sink.places}/{lease.run_id}"
                change = Change(
                    uuid.uuid4().hex, generation.pipeline.name, sink.staged_table, generation.number, "drain",
                    lease.run_id, scope={"first_batch": first_batch}, based_on=sink.based_on, place=place,
                )  # fmt: skip
                begun.append(generation.metastore.begin_change(lease, change))
                sink.stage_in(place)
        return cls(generation, begun, first_batch)

    def end(self, lease: Lease) -> None:
        """Remove files that no batch recorded (Delta's empty files, for example) and close the changes.

        What fails here is left to the next lease holder.
        """
        generation = self.generation
        with suppress(DrawdownError):
            generation.metastore.check_lease(lease)
            own = [batch.batch_id for batch in generation.batches(first_batch=self.first_batch)]
            noted = [file.path for _, file in generation.staged_files(own)]
            for change in self.changes:
                remove_unnoted(generation.storage, change, noted)
            generation.metastore.end_changes([change.change_id for change in self.changes], "committed")
