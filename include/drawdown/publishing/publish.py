"""Publish: passed batches become visible in order, each table in one commit.

No metastore lock is held meanwhile, so a commit may take any time. The sink itself fences it (see Target) and
makes it idempotent: it keeps the last batch under a transaction id of pipeline and checkpoint generation. If
the outcome of a commit is unknown, the sink is asked.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass

from drawdown.changes.protocol import (
    ChangedMeanwhileError,
    Commit,
    Staged,
    conflicts_explained,
    transaction_id,
)
from drawdown.errors import RefusedError, SourceError, TransformError
from drawdown.fault_points import durable
from drawdown.metastore import Metastore
from drawdown.metastore.records import Batch, Change, HeldSlice, Lease, StagedFile, StagedTable
from drawdown.sinks.staging_folder import remove_merged
from drawdown.sinks.targets import target_of
from drawdown.spec import Pipeline, Project
from drawdown.values.text import counted
from drawdown.workspace import Generation, Workspace

_ATTEMPTS = 5
"""A commit that lost against a concurrent one (a replay's, a person's) is tried again."""


@dataclass(frozen=True)
class Published:
    """What a publish made visible."""

    batch_ids: tuple[int, ...] = ()
    rows: int = 0

    def __add__(self, other: Published) -> Published:
        return Published(self.batch_ids + other.batch_ids, self.rows + other.rows)


def publish_passed(generation: Generation, lease: Lease) -> Published:
    """Publish passed batches up to the first held one (``ordered: false``: all passed batches).

    With direct publishing all batches, even held ones, are already visible; here they are only recorded.

    Raises:
        RefusedError: ``lease.lost`` when another run has taken the lease; ``sink.staged-gone``.
        SourceError: the sink cannot be reached.
    """
    pipeline = generation.pipeline
    ready = generation.batches(("passed", "held"))
    if pipeline.sink.publish == "audited":
        passed = itertools.takewhile if pipeline.sink.ordered else filter
        ready = list(passed(lambda batch: batch.status == "passed", ready))
    return _publish(generation.workspace, lease, pipeline, ready)


def publish_held(workspace: Workspace, lease: Lease, pipeline: Pipeline, held: HeldSlice) -> Published:
    """Publish a held slice after a person released it.

    Raises:
        RefusedError, SourceError: as publish_passed.
    """
    return _publish(workspace, lease, pipeline, held.batches, _once(pipeline, held))


def is_visible(project: Project, pipeline: Pipeline, held: HeldSlice) -> bool:
    """Ask the sink whether readers see any of the held rows, independent of the metastore.

    Raises:
        SourceError: the sink cannot be reached.
    """
    target = target_of(project, pipeline, "output")
    if target is None:
        return False
    app_id = transaction_id(pipeline.name_in_sink, held.verdict.generation, "output")
    return target.begun_batch(_once(pipeline, held) or app_id) >= held.batch_ids[0]


def _once(pipeline: Pipeline, held: HeldSlice) -> str | None:
    """Return a separate transaction id for a release in a sink where later batches may already be visible."""
    if not pipeline.sink.kind.out_of_order or pipeline.sink.mode != "append":
        return None
    return f"{transaction_id(pipeline.name_in_sink, held.verdict.generation, 'output')}/held/{held.key}"


def publish_batch(workspace: Workspace, lease: Lease, pipeline: Pipeline, batch: Batch) -> None:
    """Publish one batch as soon as it is staged (direct publishing); it is audited later.

    Raises:
        RefusedError, SourceError: as publish_passed.
    """
    with durable("batch.show"):
        _end(workspace.metastore, _commit(workspace, lease, pipeline, _Part("output", [batch])))


def publish_quarantine(
    workspace: Workspace,
    lease: Lease,
    pipeline: Pipeline,
    batches: Sequence[Batch],
) -> Published:
    """Publish the rejected rows of committed batches, independent of the verdict on the rest."""
    # Late rows are fed to the query; they are kept as well if a source asks for it.
    late = any(s.watermark and s.watermark.late == "keep" for s in pipeline.sources.values())
    rejected = [b for b in batches if b.counts.read != b.counts.fed or (late and b.counts.late)]
    with durable("quarantine.publish"):
        committed = _commit(workspace, lease, pipeline, _Part("quarantine", rejected))
        return _end(workspace.metastore, committed)


def _end(metastore: Metastore, committed: _Committed) -> Published:
    if committed.change is not None:
        metastore.end_changes([committed.change], "committed")
    return Published(committed.batch_ids, committed.rows)


def _publish(
    workspace: Workspace,
    lease: Lease,
    pipeline: Pipeline,
    batches: Sequence[Batch],
    once: str | None = None,
) -> Published:
    if not batches:
        return Published()
    generation, ids = batches[0].generation, [batch.batch_id for batch in batches]
    with durable("publish.commit"):
        change = _commit(workspace, lease, pipeline, _Part("output", batches, once)).change
    if pipeline.sink.staged_apart:
        # Before the record is written: a publish that dies in between is repeated and removes them again.
        remove_merged(workspace, pipeline.name, generation, ids)
    with durable("publish.note"):
        workspace.metastore.mark_published(lease, generation, ids, [change] if change else ())
    return Published(tuple(ids), sum(batch.counts.staged for batch in batches))


@dataclass(frozen=True)
class _Part:
    """What one commit makes visible: batches of one table; `once` as in `Commit`."""

    table: StagedTable
    batches: Sequence[Batch]
    once: str | None = None


@dataclass(frozen=True)
class _Committed:
    """What one commit made visible, and its registered change; empty if everything was already visible."""

    batch_ids: tuple[int, ...] = ()
    rows: int = 0
    change: str | None = None


def _commit(workspace: Workspace, lease: Lease, pipeline: Pipeline, part: _Part) -> _Committed:
    table, batches = part.table, part.batches
    if not batches:
        return _Committed()
    generation = batches[0].generation
    keys = _noted_keys(workspace.metastore, pipeline, generation)
    app_id = transaction_id(pipeline.name_in_sink, generation, table)
    for attempt in range(_ATTEMPTS):
        target = target_of(workspace.project, pipeline, table, keys)
        if target is None:
            # The sink has already made its batches visible; only the metastore is behind.
            return _Committed()
        done = target.published_batch(app_id)
        seen = done if part.once is None else target.published_batch(part.once)
        new = [b.batch_id for b in batches if b.batch_id > seen]
        if not new:
            return _Committed()
        files = workspace.metastore.staged_files(pipeline.name, generation, new, table=table)
        _refuse_lost_files(workspace, lease, pipeline, [b for b in batches if b.batch_id > seen], files)
        change = workspace.metastore.begin_change(
            lease,
            Change(
                uuid.uuid4().hex, pipeline.name, table, generation, "publish", lease.run_id,
                scope={"batches": new}, based_on=target.based_on,
            ),
        )  # fmt: skip
        commit = Commit(
            app_id,
            max(done, *new),
            change,
            once=part.once,
            still_ours=lambda: workspace.metastore.check_lease(lease),
        )
        try:
            with conflicts_explained(pipeline.name, table) if attempt + 1 == _ATTEMPTS else nullcontext():
                target.make_visible(Staged(new, files), commit)
        except ChangedMeanwhileError:
            workspace.metastore.end_changes([change.change_id], "given-up")
            continue
        except SourceError:
            if not _is_in(workspace.project, pipeline, table, change, app_id):
                raise
        except TransformError as refused:
            workspace.metastore.end_changes([change.change_id], "given-up")
            first = next(batch for batch in batches if batch.batch_id > seen)
            refused.do = "; or ".join(filter(None, [refused.do, *_ways_without(pipeline, first)]))
            raise
        return _Committed(tuple(new), sum(file.rows for _, file in files), change.change_id)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _refuse_lost_files(
    workspace: Workspace,
    lease: Lease,
    pipeline: Pipeline,
    batches: Sequence[Batch],
    files: Sequence[tuple[int, StagedFile]],
) -> None:
    """Refuse to publish batches of an earlier run whose files are gone, as after a restore from a copy.

    A table whose log names a missing file cannot be read at all. What this run has staged is not asked for.
    """
    storage = workspace.storage
    earlier = {batch.batch_id for batch in batches if batch.run_id != lease.run_id}
    lost = [
        (batch_id, file.path)
        for batch_id, file in files
        if batch_id in earlier and not storage.exists(storage.relative(file.path))
    ]
    if not lost:
        return
    first, path = lost[0]
    raise RefusedError(
        "sink.staged-gone",
        f"{counted(len(lost), 'file')} with rows of {pipeline.name} that wait to be published are missing,"
        f" the first of batch {first}: nothing was published",
        where=path,
        do="; or ".join(
            ["put the files back", *_ways_without(pipeline, next(b for b in batches if b.batch_id == first))]
        ),
    )


def _ways_without(pipeline: Pipeline, first: Batch) -> list[str]:
    """Return the ways on if a batch cannot be published as it was staged."""
    name, ways = pipeline.name, []
    if first.status == "staged":
        return ["fix the transform, and run again: the batch is not committed"]
    if first.batch_id > 0:
        rewind = f"drawdown checkpoint rewind {name} --to {first.batch_id - 1} --sink"
        ways.append(f"fix the transform, and `{rewind}` lets the next run read these rows again")
    if first.status == "held":
        ways.append(f"`drawdown discard {name} --why ...` goes on without them")
    return ways or ["read everything again into a new pipeline folder with its own sink"]


def _is_in(project: Project, pipeline: Pipeline, table: StagedTable, change: Change, app_id: str) -> bool:
    """Whether a commit with unknown outcome was made; False also if the sink does not answer."""
    target = target_of(project, pipeline, table)
    with suppress(SourceError):
        return target is not None and target.holds(change, app_id)
    return False


def _noted_keys(metastore: Metastore, pipeline: Pipeline, generation: int) -> list[str] | None:
    """Return the keys that a generation's batches were staged with, even if the spec has changed since.

    None if an older Drawdown version did not record them.
    """
    every = metastore.generations(pipeline.name)
    keys: list[str] | None = next(
        (each.fingerprint.get("sink.keys") for each in every if each.generation == generation), None
    )
    return keys
