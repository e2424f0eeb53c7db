"""Where rows wait until a publish has taken them into the target: a folder apart from it."""

from __future__ import annotations

from collections.abc import Collection

from drawdown.metastore import Metastore
from drawdown.metastore.records import Lease
from drawdown.spec import Pipeline
from drawdown.storage import Storage


def staging_folder(pipeline: Pipeline) -> str:
    """The folder, relative to the storage root; a Delta table that stays empty."""
    return "/".join(filter(None, (f"_drawdown/{pipeline.name}/staged", pipeline.apart)))


def sweep(
    metastore: Metastore,
    lease: Lease,
    storage: Storage,
    pipeline: Pipeline,
    generation: int,
    merged: Collection[int],
) -> None:
    """Remove every staged file but those of batches that still wait: merged ones, and Delta's empty ones.

    Raises:
        RefusedError: ``lease.lost``: a stale holder would remove its successor's files.
    """
    with metastore.fenced(lease):
        unpublished = metastore.batches(
            pipeline.name, generation, statuses=("staged", "committed", "passed", "held")
        )
        waiting = [batch.batch_id for batch in unpublished if batch.batch_id not in merged]
        kept = {f.path for _, f in metastore.staged_files(pipeline.name, generation, waiting, table="output")}
        for info in list(storage.walk(staging_folder(pipeline), depth=1)):
            if info.path not in kept:
                storage.delete(info.relative)
