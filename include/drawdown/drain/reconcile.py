"""Settle the past: what earlier runs left behind is brought in line with Spark's commit log.

Spark's commit log is the truth. A batch in it is done; a batch that is noted in the metastore and not in
it will be replayed, under the same id and with the same offsets.
"""

from __future__ import annotations

from drawdown.drain.uncounted import complete_offsets, note_baseline
from drawdown.errors import RefusedError
from drawdown.metastore.records import UNPUBLISHED, Lease
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.publishing.dead_runs import close_dead_runs
from drawdown.query.carriers import carried_sources, carrier_folder
from drawdown.recovery.advice import copy_back, refuse_torn
from drawdown.sinks.stage import SelfStagingSink, SinkStage
from drawdown.workspace import Generation


def refuse_foreign_checkpoint(generation: Generation) -> None:
    """The checkpoint folder and the metastore's record of it must know each other, and be whole.

    Raises:
        RefusedError: ``checkpoint.unknown``, ``checkpoint.missing``; ``checkpoint.torn`` and
            ``checkpoint.metadata-missing`` as `refuse_torn`.
    """
    name, files = generation.pipeline.name, generation.files
    where = generation.storage.path(generation.path)
    if generation.checkpoint is None and files.exists:
        raise RefusedError(
            "checkpoint.unknown",
            f"there is a checkpoint of {name} that this metastore knows nothing of",
            where=where,
            do="point `metastore:` of include/project.yaml at its own store; when that is lost:"
            f" {copy_back(generation)}",
        )
    refuse_torn(generation)
    if generation.checkpoint is not None and not files.exists and generation.batches():
        raise RefusedError(
            "checkpoint.missing",
            f"the checkpoint of {name} is gone, and its batches are in the sink: a new one would write every"
            " row a second time",
            where=where,
            do=copy_back(generation),
        )


def refuse_unpublished(generation: Generation, sink: str) -> None:
    """Batches that wait for their audit or publishing go to the sink that they were staged for.

    Args:
        sink: as the fingerprint names it.

    Raises:
        RefusedError: ``sink.unpublished``: the sink was changed, and there are such batches.
    """
    staged_for, pipeline = generation.fingerprint.get("sink", sink), generation.pipeline
    if staged_for == sink:
        return
    waiting = generation.batches(UNPUBLISHED)
    if waiting:
        raise RefusedError(
            "sink.unpublished",
            f"{len(waiting)} batch(es) of {pipeline.name} wait to be published in its old sink, {staged_for}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="put the old sink back and run, release or discard them; then change it",
        )


def reconcile(generation: Generation, lease: Lease) -> None:
    """Reconcile the metastore with the commit log and drop carriers that were read."""
    files, storage = generation.files, generation.storage
    last_commit = files.last_commit_batch()
    if last_commit is None:
        return
    if generation.batch(last_commit) is None:
        note_baseline(generation, lease)
    complete_offsets(generation)
    generation.metastore.mark_committed(lease, generation.number, last_commit)
    if not files.unread:
        # Every carrier was read by a committed batch: no replay needs it.
        for source in carried_sources(generation.pipeline):
            folder = carrier_folder(generation.pipeline, generation.number, source)
            for info in list(storage.list_files(f"{folder}/*.json")):
                storage.delete(info.relative)


def clean_up_crashed_runs(generation: Generation, lease: Lease, sink: SinkStage) -> None:
    """Close the changes that dead runs left open (see clean_up.py), then mark those runs as crashed.

    Their records get the counts of the batches that they saw committed: every row is in one run's counts.

    In this order: a run that is killed between the two leaves the marking, and with it the cleaning up,
    to the next.
    """
    pipeline, metastore = generation.pipeline, generation.metastore
    clean_up_changes(generation.workspace, lease, pipeline)
    dead = [
        run
        for run in metastore.open_runs(pipeline.name)
        if run.run_id != lease.run_id and run.started_at is not None
    ]
    if dead and isinstance(sink, SelfStagingSink):
        since_ms = int(min(run.started_at for run in dead if run.started_at).timestamp() * 1_000)
        known = [file for _, file in generation.staged_files(b.batch_id for b in generation.batches())]
        leftovers = sink.leftovers(known, since_ms)
        # Asked behind the listing: a run that slept since would delete what its successor is writing.
        for path in leftovers:
            metastore.check_lease(lease)
            generation.storage.delete(path)
    assert generation.checkpoint is not None
    close_dead_runs(metastore, lease, generation.checkpoint)
