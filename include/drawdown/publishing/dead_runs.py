"""Closes the records of crashed runs with the counts of their committed batches."""

from __future__ import annotations

from dataclasses import replace

from drawdown.metastore import Metastore
from drawdown.metastore.records import Checkpoint, Counts, Lease


def close_dead_runs(metastore: Metastore, lease: Lease, checkpoint: Checkpoint) -> None:
    """Mark the open runs under this lease's name as crashed, except the lease's own run.

    Each row ends up in exactly one run's counts. No file is touched.

    Args:
        checkpoint: the generation in which they ran.
    """
    name, generation = checkpoint.pipeline, checkpoint.generation
    dead = [run for run in metastore.open_runs(name) if run.run_id != lease.run_id]
    batches = metastore.batches(name, generation) if dead else []
    for run in dead:
        done = [b for b in batches if b.run_id == run.run_id and b.status != "staged"]
        published = sum(b.counts.staged for b in done if b.status == "published")
        counts = replace(sum((b.counts for b in done), Counts()), published=published)
        metastore.update_run(run.run_id, generation=generation, batches=len(done), counts=counts)
    metastore.crash_runs(lease)
