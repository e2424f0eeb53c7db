"""Detects a restored older copy of the metastore: checkpoint or table are newer."""

from __future__ import annotations

from drawdown.errors import RefusedError
from drawdown.recovery.repair.advice import back_to_metastore
from drawdown.sinks.delta.shown_generation import refuse_other_generation
from drawdown.workspace import Generation


def refuse_older_metastore(generation: Generation) -> None:
    """Refuse if the metastore does not know what checkpoint and table contain; changes nothing.

    Every committed batch was recorded before Spark committed it, except those of an uncounted watch; and the
    table shows the live generation.

    Raises:
        RefusedError: ``metastore.behind`` an older copy of the metastore was restored.
        SourceError: the table cannot be reached.
    """
    refuse_other_generation(generation.workspace, generation.pipeline)
    metastore, name = generation.metastore, generation.pipeline.name
    last_commit = generation.files.last_commit_batch() if generation.checkpoint is not None else None
    if last_commit is None:
        return
    noted = metastore.batch(name, generation.number, last_commit)
    if noted is None and metastore.uncounted_watch(name, generation.number) is None:
        raise RefusedError(
            "metastore.behind",
            f"Spark committed batch {last_commit} of {name} but the metastore has no record of it",
            where=f"generation {generation.number}",
            do=back_to_metastore(generation),
        )
