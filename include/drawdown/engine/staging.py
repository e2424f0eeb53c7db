"""What a run stages, as changes in the register: begun before its first file, closed when the run ends."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from drawdown.engine.sinks import Sink, StagingSink
from drawdown.errors import DrawdownError
from drawdown.metastore import Metastore
from drawdown.metastore.records import Change, Checkpoint, Lease
from drawdown.publishing.clean_up import remove_unnoted
from drawdown.storage import Storage


@dataclass(frozen=True)
class Staging:
    """The changes of one run, a table each.

    Attributes:
        first_batch: no batch before it is of this run.
    """

    metastore: Metastore
    checkpoint: Checkpoint
    changes: Sequence[Change]
    first_batch: int

    @classmethod
    def begin(
        cls,
        metastore: Metastore,
        lease: Lease,
        checkpoint: Checkpoint,
        sinks: Sequence[Sink],
        first_batch: int,
    ) -> Staging:
        """Begin a change for every sink that stages, and let it stage in the change's place.

        Raises:
            RefusedError: ``lease.lost``.
        """
        begun = []
        for sink in sinks:
            if isinstance(sink, StagingSink):
                place = f"{sink.places}/{lease.run_id}"
                change = Change(
                    uuid.uuid4().hex, checkpoint.pipeline, sink.staged_table, checkpoint.generation, "drain",
                    lease.run_id, scope={"first_batch": first_batch}, based_on=sink.based_on, place=place,
                )  # fmt: skip
                begun.append(metastore.begin_change(lease, change))
                sink.stage_in(place)
        return cls(metastore, checkpoint, begun, first_batch)

    def end(self, storage: Storage, lease: Lease) -> None:
        """Remove what no batch has noted, such as Delta's empty files, and close the changes.

        What cannot be done now, the next holder of the lease does.
        """
        of = self.checkpoint.pipeline, self.checkpoint.generation
        with suppress(DrawdownError):
            self.metastore.check_lease(lease)
            own = [batch.batch_id for batch in self.metastore.batches(*of, first_batch=self.first_batch)]
            noted = [file for _, file in self.metastore.staged_files(*of, own)]
            for change in self.changes:
                remove_unnoted(storage, change, noted)
            self.metastore.end_changes([change.change_id for change in self.changes], "committed")
