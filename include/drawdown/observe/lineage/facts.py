"""What a run has read and made visible, by its records: what its last event says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from drawdown.metastore.operations.runs import PUBLISHED
from drawdown.metastore.records import Batch, Run, StagedTable, Verdict
from drawdown.observe.lineage.column_lineage import OutputColumns
from drawdown.spec import Pipeline
from drawdown.workspace import Workspace


@dataclass(frozen=True)
class Amount:
    """How much was read or written; None: unknown."""

    rows: int | None = None
    files: int | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class RunFacts:
    """A run that has ended.

    Attributes:
        pipeline: the version that ran; of a rebuild, with the tables that it filled.
        read: by source; empty for a run that read nothing.
        written: what became visible, None if nothing did.
        set_aside: rows that went to the quarantine, None without any.
        batches: the batches that became visible, as [generation, first, last].
        rules: by source, for each rule of its rows, how many rows broke it.
        verdict: of the audit, None without one.
        columns: from which source columns the output comes; None when nobody has found it out.
    """

    run: Run
    pipeline: Pipeline
    read: Mapping[str, Amount]
    written: Amount | None
    set_aside: Amount | None
    batches: Sequence[Sequence[int]]
    rules: Mapping[str, Mapping[str, int]]
    verdict: Verdict | None
    columns: OutputColumns | None = None


def facts_of(
    workspace: Workspace, pipeline: Pipeline, run: Run, columns: OutputColumns | None = None
) -> RunFacts:
    """Return the facts of a run that has ended, from the metastore."""
    own = _own_batches(workspace, run)
    published = run.origin.get(PUBLISHED, ())
    verdict = workspace.metastore.verdict_of(run)
    rejected = [each.batch_id for each in own] if verdict is not None else []
    return RunFacts(
        run,
        pipeline,
        _read(pipeline, run, own),
        _written(workspace, pipeline, run, published),
        _amount(workspace, run, rejected, "quarantine"),
        published,
        _rules(own),
        verdict,
        columns,
    )


def _own_batches(workspace: Workspace, run: Run) -> list[Batch]:
    """Return the batches that Spark has committed in a run."""
    if run.generation is None or not run.batches:
        return []
    newest = workspace.metastore.newest_batches(run.pipeline, run.generation, run.batches + 1)
    return [each for each in newest if each.run_id == run.run_id and each.status != "staged"]


def _read(pipeline: Pipeline, run: Run, own: Sequence[Batch]) -> dict[str, Amount]:
    sources = pipeline.streaming_sources
    if not own and run.counts.read:
        # A replay counts its sources together.
        return dict.fromkeys(sources, Amount(run.counts.read if len(sources) == 1 else None))
    return {name: _together(batch.by_source.get(name, {}) for batch in own) for name in sources}


def _together(noted: Iterable[Mapping[str, Any]]) -> Amount:
    rows, files, size = 0, 0, 0
    of_files = False
    for each in noted:
        rows += each.get("read", 0)
        files += each.get("files", 0)
        size += each.get("bytes", 0)
        of_files = of_files or "files" in each
    return Amount(rows, files, size) if of_files else Amount(rows)


def _rules(own: Sequence[Batch]) -> dict[str, dict[str, int]]:
    """Return by source, for each rule of its rows, how many broke it."""
    found: dict[str, dict[str, int]] = {}
    for batch in own:
        for source, noted in batch.by_source.items():
            counts = found.setdefault(source, {})
            for rule, count in noted.get("rules", {}).items():
                counts[rule] = counts.get(rule, 0) + count
    return found


def _written(
    workspace: Workspace, pipeline: Pipeline, run: Run, published: Sequence[Sequence[int]]
) -> Amount | None:
    if not published:
        return Amount(run.counts.published) if run.counts.published else None
    rows, files, size = 0, 0, 0
    in_place = True
    for generation, first, last in published:
        found = workspace.metastore.batches(run.pipeline, generation, ("published",), first_batch=first)
        batches = [each for each in found if each.batch_id <= last]
        rows += sum(each.counts.staged for each in batches)
        amount = _amount(workspace, run, [each.batch_id for each in batches], "output", generation)
        in_place = in_place and amount is not None
        files += amount.files or 0 if amount else 0
        size += amount.bytes or 0 if amount else 0
    # Files that wait apart are not those that readers see.
    return Amount(rows, files, size) if in_place and not pipeline.sink.staged_apart else Amount(rows)


def _amount(
    workspace: Workspace, run: Run, batches: Sequence[int], table: StagedTable, generation: int | None = None
) -> Amount | None:
    number = generation if generation is not None else run.generation
    if not batches or number is None:
        return None
    files = [f for _, f in workspace.metastore.staged_files(run.pipeline, number, batches, table=table)]
    if not files:
        return None
    return Amount(sum(f.rows for f in files), len(files), sum(f.size for f in files))
