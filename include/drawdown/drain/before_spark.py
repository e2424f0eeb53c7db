"""What a drain refuses without Spark: a checkpoint that is damaged, of another place, or of another pipeline.

A drain plans with it, under its lease. An application asks it before it starts Spark, so that nobody waits
half a minute to hear it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from drawdown.drain.reconcile import refuse_foreign_checkpoint
from drawdown.drain.uncounted import refuse_gaps
from drawdown.errors import RefusedError
from drawdown.plan.beside_others import refuse_beside_others
from drawdown.plan.moved_storage import refuse_moved
from drawdown.recovery.repair.faults import sink_log
from drawdown.recovery.repair.older_metastore import refuse_older_metastore
from drawdown.spec.scheduling.trigger import is_asynchronous
from drawdown.workspace import Generation


def checks(generation: Generation) -> Iterator[Callable[[], None]]:
    """Yield the checks in their order; each raises what it refuses."""
    pipeline = generation.pipeline
    yield lambda: refuse_beside_others(generation)
    yield lambda: _refuse_not_renamed(generation)
    yield lambda: _refuse_name_used(generation)
    yield lambda: refuse_foreign_checkpoint(generation)
    yield lambda: refuse_moved(generation.workspace, pipeline, generation.files, sink_log(generation))
    yield lambda: refuse_older_metastore(generation)
    if not is_asynchronous(pipeline):
        yield lambda: refuse_gaps(generation)


def refuse_before_spark(generation: Generation) -> None:
    """Raise what the first of the checks refuses, unless a run that is active may still change it.

    Raises:
        RefusedError, SourceError: as a drain would.
    """
    if generation.metastore.holder_of(generation.pipeline.name) is None:
        for check in checks(generation):
            check()


def _refuse_not_renamed(generation: Generation) -> None:
    """Refuse a `first_name:` without a checkpoint: as a new pipeline it would read everything again."""
    pipeline = generation.pipeline
    if pipeline.first_name is not None and generation.checkpoint is None:
        raise RefusedError(
            "rename.not-done",
            f"{pipeline.name} has `first_name: {pipeline.first_name}`, but the metastore has no checkpoint"
            f" of {pipeline.name}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do=f"`drawdown rename {_name_until_now(generation)} {pipeline.name} --why ...` gives it what is"
            " kept under its old name; or, if the pipeline is new, remove the key",
        )


def _name_until_now(generation: Generation) -> str:
    """Return the name under which the metastore knows what the sink knows by the pipeline's first name."""
    metastore, first = generation.metastore, str(generation.pipeline.first_name)
    for name in sorted(metastore.names() - {first}):
        if any(each.fingerprint.get("sink.name") == first for each in metastore.generations(name)):
            return name
    return first


def _refuse_name_used(generation: Generation) -> None:
    """Refuse a new pipeline with another's first name: sinks would mistake it for the other."""
    pipeline, metastore = generation.pipeline, generation.metastore
    by_name = pipeline.sink.transactional or pipeline.sink.format in ("foreach", "foreach_batch")
    if generation.checkpoint is not None or not by_name:
        return
    for other in sorted(metastore.names() - {pipeline.name}):
        first = {each.fingerprint.get("sink.name") for each in metastore.generations(other)}
        if pipeline.name_in_sink in first:
            raise RefusedError(
                "rename.name-used",
                f"{other} was first called {pipeline.name_in_sink}, and its sink still identifies its"
                f" batches by that name: batches of {pipeline.name} would be mistaken for them and skipped",
                where=str(pipeline.folder / "pipeline.yaml"),
                do=f"give the folder {pipeline.folder.name} another name",
            )
