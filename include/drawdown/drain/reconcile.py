"""Brings what earlier runs left behind in line with Spark's commit log.

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
from drawdown.recovery.repair.advice import copy_back, refuse_torn
from drawdown.sinks.stage import SelfStagingSink, SinkStage
from drawdown.values.text import counted
from drawdown.workspace import Generation


def refuse_foreign_checkpoint(generation: Generation) -> None:
    """Refuse a checkpoint folder that does not match its metastore record, or is damaged.

    Raises:
        RefusedError: ``checkpoint.unknown``; for damage as `refuse_torn`.
    """
    name = generation.pipeline.name
    if generation.checkpoint is None and generation.files.exists:
        raise RefusedError(
            "checkpoint.unknown",
            f"{name} has a checkpoint that is not in this metastore",
            where=generation.storage.path(generation.path),
            do="point `metastore:` in include/project.yaml at the metastore it was recorded in; if that is"
            f" lost: {copy_back(generation)}",
        )
    refuse_torn(generation)


def refuse_unpublished(generation: Generation, sink: str) -> None:
    """Refuse a changed sink while staged batches still wait for their audit or publish.

    Args:
        sink: as the fingerprint names it.

    Raises:
        RefusedError: ``sink.unpublished``: the sink was changed while batches wait.
    """
    staged_for, pipeline = generation.fingerprint.get("sink", sink), generation.pipeline
    if staged_for == sink:
        return
    waiting = generation.batches(UNPUBLISHED)
    if waiting:
        raise RefusedError(
            "sink.unpublished",
            f"still to be published to the old sink: {counted(len(waiting), 'batch')} of {pipeline.name},"
            f" {staged_for}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do="restore the old sink in pipeline.yaml; run, release or discard these batches; then change"
            " the sink",
        )


def refuse_postponed(generation: Generation) -> None:
    """Refuse to go on beside batches that were staged under another `publish:` or `delivery:`.

    The version in use already treats batches as those that wait (plan/version_in_use.py); here, under the
    lease, only what another run has staged since then is left.

    Raises:
        RefusedError: ``sink.postponed``.
    """
    noted = [batch.treatment for batch in generation.batches(UNPUBLISHED) if batch.treatment]
    if any(generation.pipeline.treating(each) is not generation.pipeline for each in noted):
        name = generation.pipeline.name
        raise RefusedError(
            "sink.postponed",
            f"another run of {name} has staged batches under another `publish:` or `delivery:` just now",
            where=f"pipeline {name}",
            do="run again: nothing was read",
        )


def reconcile(generation: Generation, lease: Lease) -> None:
    """Reconcile the metastore with the commit log and delete carriers that were read."""
    files, storage = generation.files, generation.storage
    last_commit = files.last_commit_batch()
    if last_commit is None:
        return
    if generation.batch(last_commit) is None:
        note_baseline(generation, lease)
    complete_offsets(generation)
    generation.metastore.mark_committed(lease, generation.number, last_commit)
    if not files.unread:
        # A committed batch has read every carrier, so no replay needs them.
        for source in carried_sources(generation.pipeline):
            folder = carrier_folder(generation.pipeline, generation.number, source)
            for info in list(storage.list_files(f"{folder}/*.json")):
                storage.delete(info.relative)


def clean_up_crashed_runs(generation: Generation, lease: Lease, sink: SinkStage) -> None:
    """Close the changes that crashed runs left open (clean_up.py), then mark those runs as crashed.

    Their records get the counts of their committed batches, so that each row is in exactly one run's counts.
    The order matters: if this run is killed in between, the next run still finds unmarked runs and cleans up.
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
        # The sink's own log has all others.
        ids = {run.run_id for run in dead}
        own = metastore.batches_by_runs(pipeline.name, generation.number, ids)
        known = [file for _, file in generation.staged_files(batch.batch_id for batch in own)]
        leftovers = sink.leftovers(known, since_ms)
        # Checked after the listing: a run that has stalled since would delete what its successor is writing.
        for path in leftovers:
            metastore.check_lease(lease)
            generation.storage.delete(path)
    close_dead_runs(metastore, lease, generation.record)
