"""The calendar of a pipeline's replay intervals: a picture to see what to replay, and the commands for it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from drawdown.metastore.records import Batch, Checkpoint
from drawdown.observe.calendar.fates import FATES, Fate, Known, Span, fate_of, spans
from drawdown.observe.calendar.grid import Grid, Unit
from drawdown.observe.figures import glance
from drawdown.spec import Pipeline
from drawdown.values.dag_ids import replay_dag_id
from drawdown.values.interval import Interval, shown
from drawdown.values.moments import clamped, of_statistics
from drawdown.workspace import Workspace

_BATCHES = 300
_RANGES = 20
"""Ranges that the page lists at most, the newest."""


@dataclass(frozen=True)
class Cell:
    """One interval; ``why`` is a sentence."""

    start: datetime
    end: datetime
    column: int
    fate: Fate
    why: str


@dataclass(frozen=True)
class Row:
    """An hour, day, month or year."""

    start: datetime
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Range:
    """Intervals next to each other with the same fate; ``last``: the start of the last, as Airflow asks."""

    start: datetime
    end: datetime
    last: datetime
    fate: Fate
    why: str
    intervals: int
    command: str
    in_airflow: str


@dataclass(frozen=True)
class Calendar:
    """What the page shows.

    Attributes:
        closed: up to here intervals can be replayed, as far as records know.
        counts: intervals of this part by fate.
        ranges: what may need a replay, newest first; ``hidden`` more are not listed.
        newest: the time that this part of the calendar ends with; ``earlier`` and ``later`` those of the
            parts beside it, None where there is none.
        now: when all this was read.
    """

    pipeline: str
    replay_dag: str
    length: timedelta
    unit: Unit
    columns: int
    closed: datetime | None
    rows: Sequence[Row]
    counts: dict[Fate, int]
    ranges: Sequence[Range]
    hidden: int
    newest: datetime
    earlier: datetime | None
    later: datetime | None
    now: datetime


def calendar(
    workspace: Workspace, spec: Pipeline, dags: Collection[str], until: datetime | None = None
) -> Calendar:
    """Return the part of the calendar that ends with this time, or with what was published last.

    Args:
        spec: of a pipeline with `replay:`.
        dags: the DAGs that may be named.
    """
    assert spec.replay is not None
    length, now = spec.replay.interval.delta, workspace.metastore.now()
    known = _known(workspace, spec, dags)
    seen = [*(end for _, end in known.published), *(each.end for each in known.replays)]
    last = max(seen, default=now)
    grid = Grid(length, clamped(min(until or last, now)))
    rows = list(_rows(grid, known.within(grid.start, grid.end)))
    cells = [cell for row in rows for cell in row.cells]
    fates = [cell.fate for cell in cells]
    ranges = list(_ranges(spec.name, cells))
    return Calendar(
        pipeline=spec.name,
        replay_dag=replay_dag_id(spec.name),
        length=length,
        unit=grid.unit,
        columns=grid.columns,
        closed=None if known.closed is None else known.closed - known.lookahead,
        rows=rows,
        counts={fate: fates.count(fate) for fate in FATES if fate in fates},
        ranges=ranges[::-1][:_RANGES],
        hidden=max(0, len(ranges) - _RANGES),
        newest=grid.newest,
        earlier=grid.start - timedelta(seconds=1) if known.first and known.first < grid.start else None,
        later=min(grid.end + (grid.end - grid.start), now) if grid.end < last else None,
        now=now,
    )


def _rows(grid: Grid, known: Known) -> Iterator[Row]:
    for start, end in grid.rows:
        cells = [
            Cell(each.start, each.end, grid.column(each, start), *fate_of(each, known))
            for each in grid.intervals(start, end)
        ]
        yield Row(start, cells)


def _ranges(pipeline: str, cells: Iterable[Cell]) -> Iterator[Range]:
    for (fate, why), group in groupby(cells, key=lambda cell: (cell.fate, cell.why)):
        if fate not in ("stale", "failed", "nothing"):
            continue
        found = list(group)
        start, end, last = found[0].start, found[-1].end, found[-1].start
        yield Range(start, end, last, fate, why, len(found), *commands(pipeline, Interval(start, end), last))


def commands(pipeline: str, interval: Interval, last: datetime) -> tuple[str, str]:
    """Return the command that replays an interval here, and the one that has Airflow do it."""
    start, end, latest = (_short(at) for at in (interval.start, interval.end, last))
    here = shlex.join(["drawdown", "backfill", pipeline, "--from", start, "--to", end])
    dates = ["--from-date", start, "--to-date", latest]
    # As the page's button: else Airflow leaves out the dates that have a run.
    again = ["--reprocess-behavior", "completed"]
    dag = ["--dag-id", replay_dag_id(pipeline)]
    return here, shlex.join(["airflow", "backfill", "create", *dag, *dates, *again])


def _short(at: datetime) -> str:
    """A time as commands take it; midnight as its date."""
    text = shown(at)
    return text.removesuffix("T00:00:00Z")


def _known(workspace: Workspace, spec: Pipeline, dags: Collection[str]) -> Known:
    assert spec.replay is not None
    metastore, name = workspace.metastore, spec.name
    feeders, hidden = _feeders(workspace, spec, dags)
    replays = metastore.figures.replays([name, *feeders])
    above = [each for each in replays if name in each.about and each.state == "succeeded"]
    live = metastore.active_checkpoint(name)
    closed, published = (None, list[Span]()) if live is None else _published(workspace, spec, live)
    own = [each for each in replays if each.pipeline == name]
    times = [*(start for start, _ in published), *(each.start for each in own)]
    return Known(
        closed,
        min(times, default=None),
        spec.replay.lookahead.delta,
        published,
        own,
        above,
        frozenset(hidden),
    )


def _feeders(workspace: Workspace, spec: Pipeline, dags: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the pipelines that feed this one, and those of them that may not be named."""
    found, hidden, inputs = set[str](), set[str](), set[str]()
    outputs = dict[str, tuple[str, ...]]()
    for seen in glance(workspace.metastore):
        outputs[seen.pipeline] = seen.figures.outputs
        if seen.figures.dag_id not in dags:
            hidden.add(seen.pipeline)
        if seen.pipeline == spec.name:
            inputs.update(seen.figures.inputs)
    found = {each for each, written in outputs.items() if inputs & set(written) and each != spec.name}
    return found, hidden & found


def _published(workspace: Workspace, spec: Pipeline, live: Checkpoint) -> tuple[datetime | None, list[Span]]:
    metastore = workspace.metastore
    newest = metastore.newest_batches(spec.name, live.generation, _BATCHES)
    batches = [each for each in newest if each.status == "published"]
    if not batches:
        return None, []
    last = max(batches, key=lambda batch: batch.batch_id)
    closed = last.watermark if spec.watermarked_sources else metastore.now()
    column = str(spec.sink.time_column)
    found = spans(metastore.figures.published_actions(spec.name, live.generation), column)
    return closed, found or _by_watermark(batches)


def _by_watermark(batches: Sequence[Batch]) -> list[Span]:
    """Without statistics of files: what the newest batches have passed."""
    times = [each.watermark for each in batches if each.watermark is not None]
    times += [
        of_statistics(of["greatest"])
        for each in batches
        for of in each.by_source.values()
        if of.get("greatest")
    ]
    return [(min(times), max(times))] if times else []
