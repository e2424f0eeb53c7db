"""Publish: passed batches become visible in order, each table in one commit.

A publish is fenced: it runs inside the metastore transaction that has checked the lease's epoch, so a
stale holder that wakes up cannot commit (a Target that is not atomic fences itself). It is idempotent: the
sink itself remembers the last batch under a transaction id that names the pipeline and the checkpoint's
generation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Checkpoint, HeldSlice, Lease, StagedTable
from drawdown.publishing.staging import sweep
from drawdown.publishing.target import Commit, Staged, transaction_id
from drawdown.publishing.targets import target_of
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage


@dataclass(frozen=True)
class Published:
    """What one publish made visible."""

    batch_ids: tuple[int, ...] = ()
    rows: int = 0

    def __add__(self, other: Published) -> Published:
        return Published(self.batch_ids + other.batch_ids, self.rows + other.rows)


def publish_passed(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, checkpoint: Checkpoint
) -> Published:
    """Publish every passed batch that no held batch stands before (``ordered: false``: every one).

    With direct publishing the batches are visible already, held ones too; here they are only noted.

    Raises:
        RefusedError: ``lease.lost`` when another run holds the pipeline by now.
        SourceError: the sink cannot be reached.
    """
    ready = metastore.batches(pipeline.name, checkpoint.generation, statuses=("passed", "held"))
    if pipeline.sink.publish == "audited":
        passed = itertools.takewhile if pipeline.sink.ordered else filter
        ready = list(passed(lambda batch: batch.status == "passed", ready))
    return _publish(metastore, lease, project, pipeline, ready)


def publish_held(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, held: HeldSlice
) -> Published:
    """Publish a held slice: a person has released it.

    Raises:
        RefusedError, SourceError: as publish_passed.
    """
    return _publish(metastore, lease, project, pipeline, held.batches, _once(pipeline, held))


def is_visible(project: Project, pipeline: Pipeline, held: HeldSlice) -> bool:
    """Whether readers of the sink see anything of it, whatever the metastore has noted so far.

    Raises:
        SourceError: the sink cannot be reached.
    """
    target = target_of(project, pipeline, "output")
    if target is None:
        return False
    app_id = transaction_id(pipeline.name, held.verdict.generation, "output")
    return target.begun_batch(_once(pipeline, held) or app_id) >= held.batch_ids[0]


def _once(pipeline: Pipeline, held: HeldSlice) -> str | None:
    """An id for the release alone, in a sink where later batches may have become visible before."""
    if pipeline.sink.format != "delta" or pipeline.sink.mode != "append":
        return None
    return f"{transaction_id(pipeline.name, held.verdict.generation, 'output')}/held/{held.key}"


def publish_batch(
    metastore: Metastore, lease: Lease, project: Project, pipeline: Pipeline, batch: Batch
) -> None:
    """Direct publishing: one batch becomes visible as soon as it is staged, and is judged later.

    Raises:
        RefusedError, SourceError: as publish_passed.
    """
    with durable("batch.show"):
        _commit(metastore, lease, project, pipeline, "output", [batch])


def publish_quarantine(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    batches: Sequence[Batch],
) -> Published:
    """Make the rejected rows of committed batches visible, whatever the verdict on the rest."""
    # Late rows are fed, and kept as well where a source says so.
    late = any(s.watermark and s.watermark.late == "keep" for s in pipeline.sources.values())
    rejected = [b for b in batches if b.counts.read != b.counts.fed or (late and b.counts.late)]
    with durable("quarantine.publish"):
        return _commit(metastore, lease, project, pipeline, "quarantine", rejected)


def _publish(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    batches: Sequence[Batch],
    once: str | None = None,
) -> Published:
    if not batches:
        return Published()
    generation, ids = batches[0].generation, [batch.batch_id for batch in batches]
    with durable("publish.commit"):
        _commit(metastore, lease, project, pipeline, "output", batches, once)
    if pipeline.sink.staged_apart:
        # Before the note: a publish that dies in between is tried again, and sweeps again.
        sweep(metastore, lease, Storage(project.storage_root), pipeline, generation, ids)
    with durable("publish.note"):
        metastore.mark_published(lease, generation, ids)
    return Published(tuple(ids), sum(batch.counts.staged for batch in batches))


def _commit(
    metastore: Metastore,
    lease: Lease,
    project: Project,
    pipeline: Pipeline,
    table: StagedTable,
    batches: Sequence[Batch],
    once: str | None = None,
) -> Published:
    if not batches:
        return Published()
    generation = batches[0].generation
    target = target_of(project, pipeline, table, _noted_keys(metastore, pipeline, generation))
    if target is None:
        # A sink that shows its batches itself has done it: only the metastore is behind.
        return Published()
    app_id = transaction_id(pipeline.name, generation, table)

    def still_ours() -> None:
        with metastore.fenced(lease):
            pass

    still_ours()
    with metastore.fenced(lease) if target.atomic else nullcontext():
        done = target.published_batch(app_id)
        seen = done if once is None else target.published_batch(once)
        new = [b.batch_id for b in batches if b.batch_id > seen]
        if not new:
            return Published()
        files = metastore.staged_files(pipeline.name, generation, new, table=table)
        info = {"drawdown.pipeline": pipeline.name, "drawdown.run": lease.run_id}
        commit = Commit(app_id, max(done, *new), lease.epoch, info, still_ours, once)
        target.make_visible(Staged(new, files), commit)
    return Published(tuple(new), sum(file.rows for _, file in files))


def _noted_keys(metastore: Metastore, pipeline: Pipeline, generation: int) -> list[str] | None:
    """The keys under which a generation's batches were staged, whatever the spec says by now.

    None where an older Drawdown did not note them.
    """
    every = metastore.generations(pipeline.name)
    keys: list[str] | None = next(
        (each.fingerprint.get("sink.keys") for each in every if each.generation == generation), None
    )
    return keys
