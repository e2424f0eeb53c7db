"""Run records as the CLI shows them: a table for people, plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from drawdown.metastore.records import Run

if TYPE_CHECKING:
    from rich.table import Table

_COUNTS = ("read", "malformed", "future", "quarantined", "late", "published")
_STYLES = {
    **{"succeeded": "green", "running": "cyan", "stopped": "yellow", "failed": "red", "crashed": "red"},
    **{"pass": "green", "warn": "yellow", "fail": "red", "error": "red"},
}


def run_table(rows: Iterable[tuple[str, Run | None]], *, ids: bool) -> Table:
    """One line a run; a pipeline without a run had nothing to do.

    Args:
        ids: whether to show run ids, kinds and start times.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "kind", "started (UTC)") if ids else ():
        table.add_column(name, no_wrap=True)
    table.add_column("pipeline", no_wrap=True)
    rows = list(rows)
    # Rare, and nothing to overlook: a column of zeros would hide it.
    lost = any(run is not None and run.counts.lost for _, run in rows)
    counts = (*_COUNTS, "lost") if lost else _COUNTS
    for name in counts:
        table.add_column(name, justify="right")
    for name in ("watermark (UTC)", "verdict", "state"):
        table.add_column(name)
    table.add_column("seconds", justify="right")
    for pipeline, run in rows:
        table.add_row(*_cells(pipeline, run, counts, ids))
    return table


def progress_table(run: Run) -> Table:
    """One line for each of the last batches of a run: how long each phase that counts took, and the state."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("batch", "rows", "ms", "of which the batch itself", "state rows", "state bytes"):
        table.add_column(name, justify="right")
    table.add_column("watermark")
    for entry in run.progress:
        took, operators = entry["duration_ms"], entry["operators"]
        table.add_row(
            str(entry["batch_id"]),
            f"{entry['rows']:,}",
            f"{took.get('triggerExecution', 0):,}",
            f"{took.get('addBatch', 0):,}",
            f"{sum(operator['rows'] for operator in operators):,}" if operators else "",
            f"{sum(operator['memory_bytes'] for operator in operators):,}" if operators else "",
            entry["watermark"] or "",
        )
    return table


def run_values(run: Run) -> dict[str, Any]:
    """Every field of a run record, and how long it took."""
    return {**asdict(run), "seconds": seconds(run)}


def seconds(run: Run) -> float | None:
    """From start to end; None while it runs."""
    if run.ended_at is None or run.started_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds(), 3)


def _cells(pipeline: str, run: Run | None, counts: Sequence[str], ids: bool) -> list[str]:
    if run is None:
        return [pipeline, *["[dim]-[/]"] * len(counts), "", "", "[dim]nothing new[/]", ""]
    started = f"{run.started_at:%Y-%m-%d %H:%M:%S}" if run.started_at else ""
    took = seconds(run)
    return [
        *((run.run_id, run.kind, started) if ids else ()),
        pipeline,
        *(_number(getattr(run.counts, name)) for name in counts),
        f"{run.watermark:%Y-%m-%d %H:%M}" if run.watermark else "",
        _styled(run.verdict or ""),
        _styled(run.state),
        "" if took is None else f"{took:.1f}",
    ]


def _number(count: int) -> str:
    return f"{count:,}" if count else "[dim]0[/]"


def _styled(word: str) -> str:
    return f"[{_STYLES[word]}]{word}[/]" if word in _STYLES else word
