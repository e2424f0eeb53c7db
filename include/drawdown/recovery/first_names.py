"""The name by which a sink identifies a pipeline's batches: its first one, whatever it is called now."""

from __future__ import annotations

from drawdown.errors import RefusedError
from drawdown.layout import home_of
from drawdown.workspace import Generation

RENAMING = "renaming"
"""The file in a pipeline's folder that holds its old name while it is renamed to this one."""


def refuse_not_renamed(generation: Generation) -> None:
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


def refuse_half_renamed(generation: Generation) -> None:
    """Refuse while a rename to this name is cut off: the metastore knows the files of the old one.

    Raises:
        RefusedError: ``rename.not-done``.
    """
    name = generation.pipeline.name
    if generation.checkpoint is None and generation.storage.exists(f"{home_of(name)}/{RENAMING}"):
        refuse_not_renamed(generation)


def _name_until_now(generation: Generation) -> str:
    """Return the name under which the metastore knows what the sink knows by the pipeline's first name."""
    metastore, first = generation.metastore, str(generation.pipeline.first_name)
    for name in sorted(metastore.names() - {first}):
        if any(each.fingerprint.get("sink.name") == first for each in metastore.generations(name)):
            return name
    return first


def refuse_name_used(generation: Generation) -> None:
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
