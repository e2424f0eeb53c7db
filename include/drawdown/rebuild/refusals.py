"""The checks of a rebuild, before it starts and before it is swapped in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from drawdown.checkpoint import CheckpointFiles
from drawdown.delta.table import DeltaTableFiles
from drawdown.errors import RefusedError
from drawdown.metastore import Metastore
from drawdown.metastore.records import UNPUBLISHED, Checkpoint
from drawdown.plan.downstream import streaming_readers
from drawdown.rebuild.plan import gone_files, gone_offsets, other_tables, read_apart
from drawdown.recovery.repair.advice import refuse_cut_off
from drawdown.sinks.locations import output_uri
from drawdown.spec import Pipeline, Project
from drawdown.storage import Storage
from drawdown.values.commands import rebuild, rebuild_again
from drawdown.values.text import counted
from drawdown.workspace import Generation, Workspace

REBUILD_OLD = "put the old version of the pipeline into its folder `next/` and rebuild it"
"""The way back that does not need the old generation."""
_STARTS = frozenset({"startingoffsets", "startingversion"})


def live_of(metastore: Metastore, pipeline: str) -> Checkpoint:
    """Return the generation in use. Raises RefusedError ``rebuild.nothing-live``, ``rebuild.unfinished``."""
    live = metastore.active_checkpoint(pipeline)
    if live is None:
        raise _refused(
            pipeline, "nothing-live", f"{pipeline} has never run: there is nothing to rebuild",
            f"drawdown run {pipeline}",
        )  # fmt: skip
    return live


def refuse_rebuild(
    workspace: Workspace,
    pipeline: Pipeline,
) -> None:
    """Check whether the live generation can be rebuilt; changes nothing.

    Args:
        pipeline: the version to rebuild.

    Raises:
        RefusedError: ``rebuild.nothing-live``, ``rebuild.sink``, ``rebuild.other-sink``,
            ``rebuild.files-gone``, ``rebuild.offsets-gone``, ``rebuild.other-table``,
            ``rebuild.starts-latest``, ``rebuild.audit-failed``.
            As `refuse_cut_off`.
        SourceError: the sink or a source cannot be reached.
    """
    live = live_of(workspace.metastore, pipeline.name)
    refuse_cut_off(Generation(workspace, pipeline, live))
    if pipeline.sink.format != "delta":
        raise _refused(
            pipeline.name, "sink",
            f"{pipeline.name} writes to a {pipeline.sink.format} sink, which cannot replace one output by"
            " another in one commit",
            "make a new pipeline folder with its own sink, and move the readers to it",
        )  # fmt: skip
    is_now = f"{pipeline.sink.format} {pipeline.sink.target}", pipeline.sink.mode
    was = live.fingerprint.get("sink"), live.fingerprint.get("sink.mode")
    table = DeltaTableFiles(output_uri(workspace.project, pipeline))
    if is_now != was or table.partition_by != list(pipeline.sink.partition_by):
        raise _refused(
            pipeline.name, "other-sink",
            f"the new version of {pipeline.name} differs in sink, mode or partitioning from the table that"
            f" it should replace ({was[0]}, {was[1]})",
            "keep `path:`, `mode:` and `partition_by:`; or make a new pipeline folder with its own sink",
        )  # fmt: skip
    _refuse_latest(pipeline)
    shadow = workspace.metastore.of_rebuilds.active_checkpoint(pipeline.name)
    _refuse_gone(workspace.project, pipeline, live, shadow)
    if shadow is None:
        _refuse_gone_offsets(workspace, pipeline, live)
        _refuse_other_tables(workspace.project, pipeline, live)
    else:
        _refuse_after_a_failed_audit(workspace.metastore, shadow)


def _refuse_after_a_failed_audit(metastore: Metastore, shadow: Checkpoint) -> None:
    """Refuse to continue after a failed audit: a rebuild's slices cannot be released, so it could never be
    swapped in."""
    if failed := metastore.batches(shadow.pipeline, shadow.generation, {"held"}):
        name = shadow.pipeline
        raise _refused(
            name, "audit-failed",
            f"batches {failed[0].batch_id} to {failed[-1].batch_id} of the rebuild of {name} did not pass"
            " their audit, so the rebuild ended",
            rebuild_again(name, "fix the new version"),
        )  # fmt: skip


def rebuild_id(shadow: Checkpoint) -> str:
    """Return the id of a rebuild and its comparison; another generation or comparison has another id."""
    compared = json.dumps(shadow.rebuild.get("comparison"), sort_keys=True)
    return f"{shadow.generation}-{hashlib.sha256(compared.encode()).hexdigest()[:12]}"


def refuse_another(shadow: Checkpoint, about: str | None) -> None:
    """Raises RefusedError ``rebuild.another``: the decision is about another rebuild or comparison."""
    if about in (None, rebuild_id(shadow)):
        return
    name = shadow.pipeline
    raise _refused(
        name, "another",
        f"the decision is about rebuild {about} of {name}, but the current one is {rebuild_id(shadow)}: it"
        " was started or compared again",
        f"`drawdown rebuild show {name}` shows it; decide about that",
    )  # fmt: skip


def refuse_swap(workspace: Workspace, pipeline: Pipeline, live: Checkpoint, shadow: Checkpoint) -> None:
    """Check that the shadow may replace the live output; the caller has both leases.

    Raises:
        RefusedError: ``rebuild.not-compared``, ``rebuild.more-late``, ``rebuild.waiting``,
            ``rebuild.files-gone``, ``rebuild.readers``. SourceError: a source cannot be reached.
    """
    name = pipeline.name
    comparison = shadow.rebuild.get("comparison")
    last = last_batch(workspace.metastore, shadow)
    if comparison is None or comparison["shadow_batch"] != last:
        raise _refused(
            name, "not-compared", f"generation {shadow.generation} of {name} has not been drained and"
                                  " compared yet",
            f"drawdown rebuild start {name}",
        )  # fmt: skip
    refuse_more_late(name, comparison["late"])
    _refuse_waiting(
        workspace.metastore, live,
        lambda held: f"`drawdown release {name} --why ...` or `drawdown discard {name} --why ...`" if held
        else f"`drawdown run {name}`",
    )  # fmt: skip
    _refuse_waiting(workspace.metastore, shadow, lambda held: rebuild_again(name))
    _refuse_gone(workspace.project, pipeline, live, shadow)
    readers = readers_of(workspace, pipeline)
    if readers and (apart := read_apart(workspace.project, live, shadow, pipeline)):
        raise _refused(
            name, "readers",
            f"the table of {name} is read as a stream by {', '.join(readers)}, and the live query and"
            f" generation {shadow.generation} have read different data ({apart}): readers would get the rows"
            " in between twice, or never",
            f"`drawdown run {name}`, then {rebuild(name)} before the next drain"
            " (keep the new version in `next/`, so that the live query can run)",
        )  # fmt: skip


def readers_of(
    workspace: Workspace,
    pipeline: Pipeline,
) -> list[str]:
    """Return the pipelines that stream the live table; see `streaming_readers`."""
    table = DeltaTableFiles(output_uri(workspace.project, pipeline))
    return streaming_readers(workspace, pipeline, table.table_id)


def refuse_more_late(pipeline: str, late: dict[str, int]) -> None:
    """Raise RefusedError ``rebuild.more-late`` when the shadow dropped more rows as late."""
    if late["shadow"] > late["live"]:
        again = rebuild_again(pipeline, "let a batch of the new version read more (`maxFilesPerTrigger`)")
        raise _refused(
            pipeline, "more-late",
            f"the rebuild of {pipeline} dropped {counted(late['shadow'], 'row')} as late, the live query"
            f" {late['live']:,}",
            f"if late rows have arrived since the last drain: `drawdown run {pipeline}`, then `drawdown"
            f" rebuild start {pipeline}`; or {again}: fewer, larger batches drop fewer rows",
        )  # fmt: skip


def refuse_roll_back(workspace: Workspace, pipeline: Pipeline, live: Checkpoint) -> Checkpoint:
    """Return the generation that a roll back of `live` makes live again.

    Raises:
        RefusedError: ``rebuild.not-swapped``, ``rebuild.pruned``, ``rebuild.files-gone``,
            ``rebuild.readers``.
    """
    before = live.rebuild.get("before")
    if before is None:
        raise _refused(
            pipeline.name, "not-swapped",
            f"generation {live.generation} of {pipeline.name} was not swapped in",
            f"`drawdown checkpoint show {pipeline.name}` lists the batches to which `drawdown checkpoint"
            f" rewind {pipeline.name} --to BATCH` goes back within a generation",
        )  # fmt: skip
    old = refuse_pruned(workspace, live, REBUILD_OLD)
    _refuse_gone(workspace.project, pipeline, live, old)
    readers = readers_of(workspace, pipeline)
    if readers and last_batch(workspace.metastore, live) > live.rebuild["comparison"]["shadow_batch"]:
        raise _refused(
            pipeline.name, "readers",
            f"the table of {pipeline.name} is read as a stream by {', '.join(readers)}, and generation"
            f" {old.generation} would send the rows drained since the swap a second time",
            REBUILD_OLD,
        )  # fmt: skip
    return old


def refuse_pruned(workspace: Workspace, live: Checkpoint, do: str) -> Checkpoint:
    """Return the generation before a swap. Raises RefusedError ``rebuild.pruned`` without its record or
    files."""
    number = live.rebuild["before"]["generation"]
    there = {each.generation: each for each in workspace.metastore.generations(live.pipeline)}
    if number not in there or not CheckpointFiles(workspace.storage, there[number].path).exists:
        raise _refused(
            live.pipeline,
            "pruned",
            f"the checkpoint of generation {number} of {live.pipeline} was pruned",
            do,
        )
    return there[number]


def last_batch(metastore: Metastore, checkpoint: Checkpoint) -> int:
    """Return the last recorded batch of a generation, -1 for none."""
    noted = metastore.batches(checkpoint.pipeline, checkpoint.generation)
    return max((batch.batch_id for batch in noted), default=-1)


def _refuse_waiting(metastore: Metastore, checkpoint: Checkpoint, do: Callable[[bool], str]) -> None:
    waiting = metastore.batches(checkpoint.pipeline, checkpoint.generation, UNPUBLISHED)
    if waiting:
        held = any(batch.status == "held" for batch in waiting)
        raise _refused(
            checkpoint.pipeline, "waiting",
            f"{counted(len(waiting), 'batch')} of {checkpoint.pipeline}, generation {checkpoint.generation},"
            f" from batch {waiting[0].batch_id} on, are {'held' if held else 'not published yet'}",
            f"first {do(held)}",
        )  # fmt: skip


def _refuse_gone(project: Project, pipeline: Pipeline, reader: Checkpoint, other: Checkpoint | None) -> None:
    gone = gone_files(project, reader, other, pipeline)
    for source, files in gone.items():
        raise _refused(
            pipeline.name, "files-gone",
            f"{len(files)} of the files that source {source} of {pipeline.name} has read are gone, for"
            f" example {files[-1]}: generation {other.generation if other else 'that is wanted'} could not"
            " read them",
            "restore them from a copy or their archive; drains will not read them again",
        )  # fmt: skip


def _refuse_gone_offsets(workspace: Workspace, pipeline: Pipeline, live: Checkpoint) -> None:
    for source, where in gone_offsets(workspace, live, pipeline):
        raise _refused(
            pipeline.name, "offsets-gone",
            f"source {source} of {pipeline.name}: {where} no longer has everything that the live query has"
            " read",
            "accept the loss with `options: {failOnDataLoss: false}` in the new version; those rows will"
            " be missing",
        )  # fmt: skip


def _refuse_other_tables(project: Project, pipeline: Pipeline, live: Checkpoint) -> None:
    for source in other_tables(Storage.of(project), live, pipeline):
        raise _refused(
            pipeline.name, "other-table",
            f"the table of source {source} of {pipeline.name} was recreated after the live query read it"
            " and does not contain those rows",
            "restore the old table, or accept the loss with `options: {failOnDataLoss: false}` in the new"
            " version; those rows will be missing",
        )  # fmt: skip


def _refuse_latest(pipeline: Pipeline) -> None:
    for name, source in pipeline.streaming_sources.items():
        for option, value in source.options.items():
            if option.lower() in _STARTS and str(value).lower() == "latest":
                raise _refused(
                    pipeline.name, "starts-latest",
                    f"source {name} of {pipeline.name} says `{option}: latest`: a rebuild would start after"
                    " all existing data",
                    f"set the start in the new version, or remove `{option}`",
                )  # fmt: skip


def _refused(pipeline: str, which: str, what: str, do: str) -> RefusedError:
    return RefusedError(f"rebuild.{which}", what, where=f"pipeline {pipeline}", do=do)
