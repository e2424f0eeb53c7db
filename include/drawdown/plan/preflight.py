"""Preflight: is there anything for a drain to do? Answered without Spark, and with yes on any doubt.

A run with nothing new then costs no Spark start. It only reads: listings, the checkpoint's files, a
broker's offsets, a Delta table's version, the metastore. It does not say what a drain would refuse:
it lets the drain start and say so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drawdown.checkpoint import plain_path
from drawdown.errors import DrawdownError
from drawdown.kinds import code_at
from drawdown.layout import carriers_of
from drawdown.metastore import Metastore
from drawdown.metastore.records import BatchStatus, Checkpoint
from drawdown.sources.committed_offsets import CommittedOffsets, SourceProgress
from drawdown.sources.findings import SourceFinding
from drawdown.sources.registry import SOURCES
from drawdown.spec import Pipeline
from drawdown.storage import Storage
from drawdown.workspace import Workspace

_UNPUBLISHED: tuple[BatchStatus, ...] = ("staged", "committed", "passed")


@dataclass(frozen=True)
class Preflight:
    """The answer for one pipeline.

    Attributes:
        work: whether a drain should start.
        reasons: why, one sentence each; empty when there is nothing to do.
        backlog: per streaming source what waits there, see `SourceFinding`.
        settled_ms: until when a run should wait, see `SourceFinding`.
    """

    work: bool
    reasons: list[str] = field(default_factory=list)
    backlog: dict[str, dict[str, Any]] = field(default_factory=dict)
    settled_ms: int = 0


def preflight(
    workspace: Workspace,
    pipeline: Pipeline,
) -> Preflight:
    """Whether a pipeline has anything to drain, audit or publish. Raises nothing that a user can cause."""
    reasons: list[str] = []
    backlog: dict[str, dict[str, Any]] = {}
    settled_ms = 0
    try:
        storage = workspace.storage
        checkpoint = workspace.metastore.active_checkpoint(pipeline.name)
        reasons += _unfinished_business(workspace.metastore, pipeline, checkpoint)
        past = CommittedOffsets.read(storage, checkpoint)
        reasons += past.reasons
        reasons += _pending_carriers(storage, pipeline, checkpoint, past)
        reasons += _pending_replays(workspace.metastore, past)
        reasons += _unknown_batch(workspace.metastore, past)
    except DrawdownError as error:
        return Preflight(True, [*reasons, f"in doubt: {error.what}"], backlog)
    for name, source in pipeline.sources.items():
        if source.static:
            continue
        try:
            finding = _look(workspace, pipeline, name, past)
        except DrawdownError as error:
            finding = SourceFinding((f"in doubt: {error.what}",))
        reasons += [f"{name}: {reason}" for reason in finding.reasons]
        backlog[name] = finding.backlog
        settled_ms = max(settled_ms, finding.settled_ms)
    return Preflight(bool(reasons), reasons, backlog, settled_ms)


def _unfinished_business(
    metastore: Metastore, pipeline: Pipeline, checkpoint: Checkpoint | None
) -> Iterator[str]:
    if checkpoint is not None:
        left = metastore.batches(pipeline.name, checkpoint.generation, _UNPUBLISHED)
        held = metastore.batches(pipeline.name, checkpoint.generation, ("held",))
        if held and pipeline.sink.publish == "audited" and pipeline.sink.ordered:
            # What passed behind a held batch waits for a person, not for a run.
            left = [b for b in left if b.status != "passed" or b.batch_id < held[0].batch_id]
        if left:
            yield f"{len(left)} batch(es) are staged and not yet judged or published"
    if metastore.holder_of(pipeline.name) is None:
        for run in metastore.open_runs(pipeline.name):
            yield f"run {run.run_id} died without a word"


def _pending_carriers(
    storage: Storage, pipeline: Pipeline, checkpoint: Checkpoint | None, past: CommittedOffsets
) -> Iterator[str]:
    """Carriers that a dead run wrote and no batch has read (query/carriers.py writes them)."""
    if checkpoint is None:
        return
    folder = carriers_of(pipeline.name, checkpoint.generation)
    waiting: dict[str, set[str]] = {}
    for info in storage.walk(folder, depth=2):
        if info.name.endswith(".json") and not info.name.startswith("."):
            waiting.setdefault(info.relative.split("/")[-2], set()).add(plain_path(info.path))
    for source, paths in sorted(waiting.items()):
        if paths - {file.path for file in past.seen(f"{source}#carrier")}:
            yield f"a carrier of {source} is not read yet"


def _pending_replays(metastore: Metastore, past: CommittedOffsets) -> Iterator[str]:
    """Replays of set-aside rows whose command died before their batch was committed."""
    if past.checkpoint is None or past.files is None:
        return
    first = (past.files.last_commit_batch() or 0) + 1
    of = past.checkpoint.pipeline, past.checkpoint.generation
    rows = sum(each.rows for each in metastore.replays(*of, first_batch=first))
    if rows:
        yield f"{rows} row(s) of the quarantine wait for the next batch"


def _unknown_batch(metastore: Metastore, past: CommittedOffsets) -> Iterator[str]:
    """A committed batch that the metastore does not know: the next run says what is to be done."""
    last = past.files.last_commit_batch() if past.files is not None else None
    if past.checkpoint is None or last is None:
        return
    of = past.checkpoint.pipeline, past.checkpoint.generation
    if metastore.batch(*of, last) is None and metastore.uncounted_watch(*of) is None:
        yield f"batch {last} was committed, and the metastore does not know it"


def _look(workspace: Workspace, pipeline: Pipeline, name: str, past: CommittedOffsets) -> SourceFinding:
    if past.source_order and name not in past.source_order:
        return SourceFinding(("is not in the checkpoint",))
    if past.differs(name):
        return SourceFinding(("its readings in the transform are not equally far",))
    format = pipeline.sources[name].format
    backlog = SOURCES[format].backlog
    if backlog is None:
        return SourceFinding((f"only Spark can tell what a {format} source has",))
    finding: SourceFinding = code_at(backlog)(SourceProgress(workspace, pipeline, name, past))
    return finding
