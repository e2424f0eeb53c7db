"""Publish: passed batches become visible in order, each table in one commit.

A publish is fenced: it runs inside the metastore transaction that has checked the lease's epoch, so a
stale holder that wakes up cannot commit. It is idempotent: the table itself remembers the last batch
under a transaction id that names the pipeline and the checkpoint's generation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Checkpoint, Lease, StagedTable
from drawdown.publishing.commits import Staged, make_visible
from drawdown.publishing.delta_table import Commit, DeltaTableFiles
from drawdown.publishing.staging import sweep
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


@dataclass(frozen=True)
class Published:
    """What one publish made visible."""

    batch_ids: tuple[int, ...] = ()
    rows: int = 0


def transaction_id(pipeline: str, generation: int, table: StagedTable) -> str:
    """The Delta transaction id of a pipeline's commits into one of its two tables.

    It names the generation: Delta skips a batch id it has seen, and a new generation counts from 0.
    """
    return f"drawdown/{pipeline}/{generation}/{table}"


def output_uri(project: Project, pipeline: Pipeline) -> str:
    """Where a sink that keeps files is."""
    assert pipeline.sink.path is not None
    return Storage(project.storage_root).path(pipeline.sink.path)


def quarantine_uri(project: Project, pipeline: Pipeline) -> str:
    """Where the pipeline's rejected rows are."""
    return Storage(project.storage_root).path(f"quarantine/{pipeline.name}")


def publish_passed(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, checkpoint: Checkpoint
) -> Published:
    """Publish every passed batch that no held batch stands before.

    With direct publishing the batches are visible already, held ones too; here they are only noted.

    Raises:
        RefusedError: ``lease.lost`` when another run holds the pipeline by now.
        SourceError: the sink cannot be reached.
    """
    ready = metastore.batches(pipeline.name, checkpoint.generation, statuses=("passed", "held"))
    if pipeline.sink.publish == "audited":
        ready = list(itertools.takewhile(lambda batch: batch.status == "passed", ready))
    return _publish(metastore, lease, project, pipeline, ready)


def publish_released(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, checkpoint: Checkpoint
) -> Published:
    """Publish held batches too, in order with the passed ones: a person has released them.

    Raises:
        RefusedError, SourceError: as publish_passed.
    """
    ready = metastore.batches(pipeline.name, checkpoint.generation, statuses=("passed", "held"))
    return _publish(metastore, lease, project, pipeline, ready)


def visible(project: Project, pipeline: Pipeline, batches: Sequence[Batch]) -> list[Batch]:
    """Those batches whose rows readers of a Delta sink see, whatever the metastore has noted so far.

    Raises:
        SourceError: the sink cannot be reached.
    """
    if pipeline.sink.format != "delta" or not batches:
        return []
    app_id = transaction_id(pipeline.name, batches[0].generation, "output")
    done = DeltaTableFiles(output_uri(project, pipeline)).published_version(app_id)
    return [batch for batch in batches if batch.batch_id <= done]


def publish_batch(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, batch: Batch
) -> None:
    """Direct publishing: one batch becomes visible as soon as it is staged, and is judged later.

    Raises:
        RefusedError, SourceError: as publish_passed.
    """
    if pipeline.sink.format == "delta":
        _commit(metastore, lease, project, pipeline, "output", [batch])


def publish_quarantine(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    batches: Sequence[Batch],
) -> Published:
    """Make the rejected rows of committed batches visible, whatever the verdict on the rest."""
    rejected = [b for b in batches if b.counts.read != b.counts.fed]
    return _commit(metastore, lease, project, pipeline, "quarantine", rejected)


def _publish(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, batches: Sequence[Batch]
) -> Published:
    if not batches:
        return Published()
    generation, ids = batches[0].generation, [batch.batch_id for batch in batches]
    if pipeline.sink.format == "delta":
        _commit(metastore, lease, project, pipeline, "output", batches)
    if pipeline.sink.mode == "update":
        # Before the note: a publish that dies in between is tried again, and sweeps again.
        sweep(metastore, lease, Storage(project.storage_root), pipeline, generation, ids)
    # The native file sink has made its files visible itself: only the metastore is behind.
    metastore.mark_published(lease, generation, ids)
    return Published(tuple(ids), sum(batch.counts.staged for batch in batches))


def _commit(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    table: StagedTable,
    batches: Sequence[Batch],
) -> Published:
    if not batches:
        return Published()
    generation = batches[0].generation
    uri = {"output": output_uri, "quarantine": quarantine_uri}[table](project, pipeline)
    target = DeltaTableFiles(uri)
    app_id = transaction_id(pipeline.name, generation, table)
    with metastore.fenced(lease):
        done = target.published_version(app_id)
        new = [b.batch_id for b in batches if b.batch_id > done]
        if not new:
            return Published()
        files = metastore.staged_files(pipeline.name, generation, new, table=table)
        make_visible(
            Storage(project.storage_root),
            target,
            pipeline.sink.mode if table == "output" else "append",
            pipeline.sink.keys,
            Staged(new, files),
            Commit(app_id, max(new), {"drawdown.pipeline": pipeline.name, "drawdown.run": lease.run_id}),
        )
    return Published(tuple(new), sum(file.rows for _, file in files))
