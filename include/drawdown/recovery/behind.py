"""A metastore that was put back from an older copy is recognised by what is newer in checkpoint and table."""

from __future__ import annotations

from drawdown.errors import RefusedError
from drawdown.recovery.advice import back_to_metastore
from drawdown.sinks.delta.shown_generation import refuse_other_generation
from drawdown.workspace import Generation


def refuse_older_metastore(generation: Generation) -> None:
    """What the checkpoint and the table have must be known to the metastore; touches nothing.

    Every committed batch was noted before Spark committed it, but for those of an uncounted watch; and what
    the table shows is of the generation in use.

    Raises:
        RefusedError: ``metastore.behind`` when it is not: an older copy of the metastore was put back.
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
            f"Spark committed batch {last_commit} of {name} and the metastore never heard of it",
            where=f"generation {generation.number}",
            do=back_to_metastore(generation),
        )
