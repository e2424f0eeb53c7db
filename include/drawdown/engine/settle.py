"""Settle the past: what earlier runs left behind is brought in line with Spark's commit log.

Spark's commit log is the truth. A batch in it is done; a batch that is noted in the metastore and not in
it will be replayed, under the same id and with the same offsets.
"""

from __future__ import annotations

from drawdown.checkpoint import CheckpointFiles
from drawdown.engine.carriers import carried_sources, carrier_folder
from drawdown.engine.sinks import SelfStagingSink, Sink
from drawdown.engine.uncounted import complete_offsets, note_baseline
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import UNPUBLISHED, Checkpoint, Lease
from drawdown.publishing.clean_up import clean_up_changes
from drawdown.publishing.dead_runs import close_dead_runs
from drawdown.recovery.advice import copy_back, refuse_torn
from drawdown.recovery.generation import Generation
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


def refuse_foreign_checkpoint(
    generation: Generation,
) -> None:
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
    if generation.checkpoint is not None and not files.exists and generation.batches_noted:
        raise RefusedError(
            "checkpoint.missing",
            f"the checkpoint of {name} is gone, and its batches are in the sink: a new one would write every"
            " row a second time",
            where=where,
            do=copy_back(generation),
        )


def refuse_older_metastore(
    metastore: Metastore, pipeline: Pipeline, checkpoint: Checkpoint | None, files: CheckpointFiles
) -> None:
    """Every committed batch was noted before Spark committed it, but for those of an uncounted watch.

    Raises:
        RefusedError: ``metastore.behind`` when one was not.
    """
    last_commit = files.last_commit_batch() if checkpoint is not None else None
    if checkpoint is None or last_commit is None:
        return
    noted = metastore.batch(pipeline.name, checkpoint.generation, last_commit)
    if noted is None and metastore.uncounted_watch(pipeline.name, checkpoint.generation) is None:
        raise RefusedError(
            "metastore.behind",
            f"Spark committed batch {last_commit} of {pipeline.name} and the metastore never heard of it",
            where=f"generation {checkpoint.generation}",
            do="restore the newest copy of the metastore: it holds the staged files of that batch. When it"
            f" was a rewind that was cut off, ask for it again (`drawdown runs {pipeline.name}` shows it)",
        )


def refuse_unpublished(
    metastore: Metastore, pipeline: Pipeline, checkpoint: Checkpoint | None, sink: str
) -> None:
    """Batches that wait for their audit or publishing go to the sink that they were staged for.

    Args:
        sink: as the fingerprint names it.

    Raises:
        RefusedError: ``sink.unpublished``: the sink was changed, and there are such batches.
    """
    if checkpoint is None or checkpoint.fingerprint.get("sink", sink) == sink:
        return
    waiting = metastore.batches(pipeline.name, checkpoint.generation, UNPUBLISHED)
    if waiting:
        raise RefusedError(
            "sink.unpublished",
            f"{len(waiting)} batch(es) of {pipeline.name} wait to be published in its old sink,"
            f" {checkpoint.fingerprint['sink']}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="put the old sink back and run, release or discard them; then change it",
        )


def settle(
    metastore: Metastore,
    lease: Lease,
    storage: Storage,
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    files: CheckpointFiles,
) -> None:
    """Reconcile the metastore with the commit log and drop carriers that were read."""
    last_commit = files.last_commit_batch()
    if last_commit is None:
        return
    if metastore.batch(pipeline.name, checkpoint.generation, last_commit) is None:
        note_baseline(metastore, lease, checkpoint, files)
    complete_offsets(storage, checkpoint, files)
    metastore.mark_committed(lease, checkpoint.generation, last_commit)
    if not files.unread:
        # Every carrier was read by a committed batch: no replay needs it.
        for source in carried_sources(pipeline):
            for info in list(
                storage.list_files(f"{carrier_folder(pipeline, checkpoint.generation, source)}/*.json")
            ):
                storage.delete(info.relative)


def clean_up_crashed_runs(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    sink: Sink,
) -> None:
    """Close the changes that dead runs left open (see clean_up.py), then mark those runs as crashed.

    Their records get the counts of the batches that they saw committed: every row is in one run's counts.

    In this order: a run that is killed between the two leaves the marking, and with it the cleaning up,
    to the next.
    """
    clean_up_changes(metastore, lease, project, pipeline)
    dead = [
        run
        for run in metastore.open_runs(pipeline.name)
        if run.run_id != lease.run_id and run.started_at is not None
    ]
    if dead and isinstance(sink, SelfStagingSink):
        batches = metastore.batches(pipeline.name, checkpoint.generation)
        since_ms = int(min(run.started_at for run in dead if run.started_at).timestamp() * 1_000)
        ids = [b.batch_id for b in batches]
        known = [file for _, file in metastore.staged_files(pipeline.name, checkpoint.generation, ids)]
        storage, leftovers = Storage(project.storage_root), sink.leftovers(known, since_ms)
        # Asked behind the listing: a run that slept since would delete what its successor is writing.
        for path in leftovers:
            metastore.check_lease(lease)
            storage.delete(path)
    close_dead_runs(metastore, lease, checkpoint)
