"""Preflight: does a drain have work? Answered without Spark, and with yes on any doubt.

So a run without new data starts no Spark. It only reads: listings, the checkpoint's files, a broker's
offsets, a Delta table's version, the metastore. It does not look for refusals: a changed spec is a reason to
start, and the drain reports what it refuses. A run ends here only if its pipeline collides with another one,
or a source cannot be read at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from drawdown.checkpoint import plain_path
from drawdown.errors import DrawdownError, SourceError, SpecError
from drawdown.kinds import code_at
from drawdown.layout import carriers_of
from drawdown.metastore.records import BatchStatus
from drawdown.plan.fingerprint import is_looked_at, spec_fingerprint
from drawdown.plan.spec_changes import changes
from drawdown.sources.committed_offsets import CommittedOffsets, SourceProgress
from drawdown.sources.existing_path import UNREADABLE
from drawdown.sources.findings import SourceFinding
from drawdown.sources.registry import SOURCES
from drawdown.spec import Pipeline
from drawdown.spec.loader import refusal_beside_others
from drawdown.values.text import counted
from drawdown.workspace import Generation, Workspace

_UNPUBLISHED: tuple[BatchStatus, ...] = ("staged", "committed", "passed")


@dataclass(frozen=True)
class Preflight:
    """The answer for one pipeline.

    Attributes:
        work: whether a drain should start.
        reasons: why, one sentence each; empty when there is no work.
        backlog: the backlog per streaming source, see `SourceFinding`.
        settled_ms: until when a run should wait, see `SourceFinding`.
        error: why a run cannot start whatever waits; None when it can.
    """

    work: bool
    reasons: list[str] = field(default_factory=list)
    backlog: dict[str, dict[str, Any]] = field(default_factory=dict)
    settled_ms: int = 0
    error: SourceError | SpecError | None = None


def preflight(workspace: Workspace, pipeline: Pipeline) -> Preflight:
    """Find out whether a pipeline has anything to drain, audit or publish. User mistakes raise nothing."""
    reasons: list[str] = []
    backlog: dict[str, dict[str, Any]] = {}
    settled_ms = 0
    unreadable: SourceError | None = None
    if (refusal := refusal_beside_others(workspace.project, pipeline.name)) is not None:
        return Preflight(True, [f"is refused ({refusal.id})"], error=refusal)
    try:
        generation = Generation.of(workspace, pipeline)
        changed = list(_changed(generation))
        reasons += changed
        reasons += _unfinished_business(generation)
        past = CommittedOffsets.read(workspace.storage, generation.checkpoint)
        reasons += past.reasons
        reasons += _pending_carriers(generation, past)
        reasons += _pending_replays(generation, past)
        reasons += _unknown_batch(generation, past)
    except DrawdownError as error:
        return Preflight(True, [*reasons, f"in doubt: {error.what}"], backlog)
    for name, source in pipeline.sources.items():
        if source.static:
            continue
        try:
            finding = _look(workspace, pipeline, name, past)
        except DrawdownError as error:
            finding = SourceFinding((f"in doubt: {error.what}",))
            if isinstance(error, SourceError) and error.id in UNREADABLE:
                unreadable = unreadable or error
                finding = SourceFinding((f"cannot be read ({error.id})",))
        reasons += [f"source {name}: {reason}" for reason in finding.reasons]
        backlog[name] = finding.backlog
        settled_ms = max(settled_ms, finding.settled_ms)
    # Of a spec that has changed, a drain says first what the checkpoint does not take.
    return Preflight(bool(reasons), reasons, backlog, settled_ms, None if changed else unreadable)


def _changed(generation: Generation) -> Iterator[str]:
    """A change that no run has compared with the checkpoint, and that may be refused: it is said at once.

    What every checkpoint takes (rate limits, `conf:`) waits for data. Of a transform only Spark can tell what
    it keeps in state.
    """
    if generation.checkpoint is None:
        return
    before, now = generation.fingerprint, spec_fingerprint(generation.pipeline)
    found = changes(before, now)
    keys = [change.key for change in found if not change.allowed or change.key == "transform"]
    if keys and not is_looked_at(before, now):
        what = ", ".join(keys)
        yield f"{what} changed since the last batch: the run checks whether the checkpoint takes it"


def _unfinished_business(generation: Generation) -> Iterator[str]:
    metastore, pipeline = generation.metastore, generation.pipeline
    if generation.checkpoint is not None:
        left = generation.batches(_UNPUBLISHED)
        held = generation.batches(("held",))
        if held and pipeline.sink.publish == "audited" and pipeline.sink.ordered:
            # Passed batches behind a held one wait for a person, not for a run.
            left = [b for b in left if b.status != "passed" or b.batch_id < held[0].batch_id]
        if left:
            yield f"staged but not yet audited or published: {counted(len(left), 'batch')}"
    if metastore.holder_of(pipeline.name) is None:
        for run in metastore.open_runs(pipeline.name):
            yield f"run {run.run_id} died without closing its record"


def _pending_carriers(generation: Generation, past: CommittedOffsets) -> Iterator[str]:
    """Yield carriers that a crashed run wrote and no batch has read (query/carriers.py writes them)."""
    if generation.checkpoint is None:
        return
    folder = carriers_of(generation.pipeline.name, generation.number)
    waiting: dict[str, set[str]] = {}
    for info in generation.storage.walk(folder, depth=2):
        if info.name.endswith(".json") and not info.name.startswith("."):
            waiting.setdefault(info.relative.split("/")[-2], set()).add(plain_path(info.path))
    for source, paths in sorted(waiting.items()):
        if paths - {file.path for file in past.seen(f"{source}#carrier")}:
            yield f"a carrier of {source} has not been read yet"


def _pending_replays(generation: Generation, past: CommittedOffsets) -> Iterator[str]:
    """Yield replays of quarantined rows whose command died before their batch was committed."""
    if past.files is None:
        return
    first = (past.files.last_commit_batch() or 0) + 1
    rows = sum(each.rows for each in generation.replays(first_batch=first))
    if rows:
        yield f"waiting for the next batch: {counted(rows, 'quarantined row')}"


def _unknown_batch(generation: Generation, past: CommittedOffsets) -> Iterator[str]:
    """Yield a committed batch that is not in the metastore: the next run says how to fix it."""
    last = past.files.last_commit_batch() if past.files is not None else None
    if last is None or generation.batch(last) is not None:
        return
    if generation.metastore.uncounted_watch(generation.pipeline.name, generation.number) is None:
        yield f"batch {last} was committed, but is not in the metastore"


def _look(workspace: Workspace, pipeline: Pipeline, name: str, past: CommittedOffsets) -> SourceFinding:
    if past.source_order and name not in past.source_order:
        return SourceFinding(("is not in the checkpoint",))
    if past.differs(name):
        return SourceFinding(("the transform reads it twice, with different offsets",))
    format = pipeline.sources[name].format
    backlog = SOURCES[format].backlog
    if backlog is None:
        return SourceFinding((f"only Spark can tell whether a {format} source has data",))
    finding: SourceFinding = code_at(backlog)(SourceProgress(workspace, pipeline, name, past))
    return finding
