"""What waits for a person: held slices and rebuilds, each with what a decision needs to know.

Deciding itself is Airflow's own approval, or a command.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drawdown.held.deadlines import Term, terms
from drawdown.metastore import Metastore
from drawdown.metastore.operations.runs import REBUILD
from drawdown.metastore.records import Checkpoint, HeldSlice, Run
from drawdown.observe.figures import Glance
from drawdown.observe.pipeline.expectations import judgement_of
from drawdown.quality.data_docs import page_name
from drawdown.rebuild.comparison_text import comparison_lines
from drawdown.workspace import Workspace

PAGE = 20
"""Pipelines on a page."""
_SLICES = 5
"""Held slices of a pipeline that are shown: the first ones, which are decided first."""
_NUMBERS = ("read", "malformed", "future", "quarantined", "late", "staged")
_IN_NUMBERS = ("rows: ", "dropped as late: ", "column ")
"""How the lines of a comparison begin that say what the numbers say."""
_AGGREGATES = ("nulls", "distinct", "min", "max", "sum")


@dataclass(frozen=True)
class Compared:
    """A number of what waits, and the same of what readers see; None where it is not known."""

    name: str
    here: Any
    before: Any

    @property
    def differs(self) -> bool:
        return bool(self.here != self.before)


@dataclass(frozen=True)
class WaitingSlice:
    """A held slice.

    Attributes:
        run: that drained it; None where its record was pruned.
        failed: the entries of its verdict that did not pass, with samples as `samples:` allows.
        passed: how many passed.
        numbers: against the newest published run, and the newest published slice.
        data_docs: the name of its page among the Data Docs.
    """

    term: Term
    run: Run | None
    failed: Sequence[dict[str, Any]]
    passed: int
    numbers: Sequence[Compared]
    data_docs: str

    @property
    def held(self) -> HeldSlice:
        return self.term.held


@dataclass(frozen=True)
class ComparedRebuild:
    """A rebuild that was compared.

    Attributes:
        run: the newest run that computed it; None where its record was pruned.
        numbers: rebuilt against live.
        lines: what the numbers do not say, a sentence each.
        sample: rows that differ, as `samples:` allows.
    """

    shadow: Checkpoint
    run: Run | None
    numbers: Sequence[Compared]
    lines: Sequence[str]
    sample: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class WaitingPipeline:
    """What waits of one pipeline; ``more``: held slices that are not shown."""

    seen: Glance
    slices: Sequence[WaitingSlice]
    more: int
    rebuild: ComparedRebuild | None


@dataclass(frozen=True)
class Decisions:
    """One page, and how many pipelines wait on all of them."""

    shown: Sequence[WaitingPipeline]
    found: int


def decisions(
    workspace: Workspace, all_seen: Iterable[Glance], dags: Collection[str], pipeline: str = "", page: int = 1
) -> Decisions:
    """Return one page of what waits for a person, what ends first at the top.

    Args:
        dags: the ids of the DAGs that may be seen.
        pipeline: only this one; "": all.
    """
    found = [
        seen
        for seen in all_seen
        if seen.figures.dag_id in dags
        and pipeline in ("", seen.pipeline)
        and (seen.figures.held is not None or seen.figures.rebuild is not None)
    ]
    found.sort(key=_urgency)
    first = (max(page, 1) - 1) * PAGE
    shown = [_waiting(workspace, seen) for seen in found[first : first + PAGE]]
    # What was decided since the figures were recorded no longer waits.
    return Decisions([each for each in shown if each.slices or each.rebuild is not None], len(found))


def _urgency(seen: Glance) -> tuple[bool, datetime, str]:
    held, rebuild = seen.figures.held, seen.figures.rebuild
    if held is not None:
        return False, held.ends, seen.pipeline
    assert rebuild is not None
    return True, rebuild.since, seen.pipeline


def _waiting(workspace: Workspace, seen: Glance) -> WaitingPipeline:
    held = terms(workspace, seen.pipeline)
    published = _published(workspace.metastore, seen.pipeline) if held else None
    return WaitingPipeline(
        seen,
        [_judged(workspace.metastore, term, published) for term in held[:_SLICES]],
        max(0, len(held) - _SLICES),
        _rebuild(workspace.metastore, seen.pipeline) if seen.figures.rebuild is not None else None,
    )


def _published(metastore: Metastore, pipeline: str) -> Run | None:
    """The newest run whose rows readers see."""
    runs = metastore.recent_runs(pipeline, 30)
    return next((run for run in runs if run.counted and run.counts.published), None)


def _judged(metastore: Metastore, term: Term, published: Run | None) -> WaitingSlice:
    verdict = term.held.verdict
    results = [{**entry, "judgement": judgement_of(entry)} for entry in verdict.results]
    bad = [entry for entry in results if entry["judgement"] in ("fail", "warn", "error")]
    return WaitingSlice(
        term,
        metastore.run(verdict.run_id),
        sorted(bad, key=lambda entry: entry["judgement"] == "warn"),
        sum(entry["judgement"] == "pass" for entry in results),
        [*_counts(term.held, published), *_measures(metastore, term.held)],
        page_name(verdict) if verdict.results else "",
    )


def _counts(held: HeldSlice, published: Run | None) -> list[Compared]:
    pairs = [
        Compared(
            f"rows {name}" if name != "future" else "rows too far in the future",
            sum(getattr(batch.counts, name) for batch in held.batches),
            getattr(published.counts, name) if published is not None else None,
        )
        for name in _NUMBERS
    ]
    return [each for each in pairs if each.here or each.before]


def _measures(metastore: Metastore, held: HeldSlice) -> list[Compared]:
    """What `history:` compares."""
    here = {key: value for key, value in held.verdict.measures.items() if isinstance(value, int | float)}
    if not here:
        return []
    past = metastore.slice_history(held.verdict.pipeline, dict.fromkeys(here, 1))
    before = {key: value for measures in reversed(past) for key, value in measures.items()}
    return [Compared(key, value, before.get(key)) for key, value in here.items()]


def _rebuild(metastore: Metastore, pipeline: str) -> ComparedRebuild | None:
    shadow = metastore.of_rebuilds.active_checkpoint(pipeline)
    comparison = shadow.rebuild.get("comparison") if shadow is not None else None
    if shadow is None or comparison is None:
        return None
    runs = metastore.runs_of_origin({}, pipeline=pipeline, kinds=(REBUILD,))
    lines = [line for line in comparison_lines(comparison) if not line.startswith(_IN_NUMBERS)]
    return ComparedRebuild(
        shadow, next(iter(runs), None), _sides(comparison), lines, comparison.get("sample", ())
    )


def _sides(comparison: dict[str, Any]) -> list[Compared]:
    rows, late = comparison["rows"], comparison["late"]
    live, shadow = comparison["aggregates"]["live"], comparison["aggregates"]["shadow"]
    found = [
        Compared("rows", rows["shadow"], rows["live"]),
        Compared("rows dropped as late", late["shadow"], late["live"]),
    ]
    for column in live:
        each = (
            Compared(f"{what} of {column}", shadow[column].get(what), live[column].get(what))
            for what in _AGGREGATES
        )
        found += [number for number in each if number.differs]
    return found
