"""Closes the records of crashed runs with the counts of their committed batches.

A run that failed because storage did could not read how far it had come: its counts are completed, too.
"""

from __future__ import annotations

from dataclasses import replace

from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Checkpoint, Counts, Lease, Run

_FAILED_IN_A_ROW = 10


def close_dead_runs(metastore: Metastore, lease: Lease, checkpoint: Checkpoint) -> None:
    """Mark the open runs under this lease's name as crashed, except the lease's own run.

    Each row ends up in exactly one run's counts. Call it when the committed batches are marked. No file is
    touched.

    Args:
        checkpoint: the generation in which they ran.
    """
    name, generation = checkpoint.pipeline, checkpoint.generation
    dead = [run for run in metastore.open_runs(name) if run.run_id != lease.run_id]
    failed = [
        run
        for run in metastore.recent_runs(name, _FAILED_IN_A_ROW)
        if run.state == "failed" and run.generation == generation
    ]
    ids = [run.run_id for run in dead + failed]
    batches = metastore.batches_by_runs(name, generation, ids) if ids else []
    for run in dead + failed:
        done = [b for b in batches if b.run_id == run.run_id and b.status != "staged"]
        if run.state == "running" or len(done) > run.batches:
            counts = _counts(run, done)
            metastore.update_run(run.run_id, generation=generation, batches=len(done), counts=counts)
    metastore.crash_runs(lease)


def _counts(run: Run, done: list[Batch]) -> Counts:
    counts = sum((batch.counts for batch in done), Counts())
    published = sum(batch.counts.staged for batch in done if batch.status == "published")
    # A run that closed its own record knows of late groups and duplicates, which Spark tells nobody else.
    return replace(
        counts,
        published=max(published, run.counts.published),
        late_groups=max(counts.late_groups, run.counts.late_groups),
        duplicates=max(counts.duplicates, run.counts.duplicates),
    )
