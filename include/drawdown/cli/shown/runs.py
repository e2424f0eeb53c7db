"""Formats run records: listings for people, plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from drawdown.metastore.records import Run
from drawdown.metastore.state_rows import state_rows, with_known_rows
from drawdown.values.text import in_utc

if TYPE_CHECKING:
    from rich.text import Text

    from drawdown.cli.shown.listing import Listing

_ASIDE = ("malformed", "future", "quarantined")
_MORE = ("malformed", "future", "quarantined", "late")
_STYLES = {
    **{"succeeded": "green", "running": "cyan", "stopped": "yellow", "failed": "red", "crashed": "red"},
    **{"pass": "green", "warn": "yellow", "fail": "red", "error": "red"},
}


def run_table(
    rows: Iterable[tuple[str, Run | None]], *, when: bool = True, name: bool = True, wide: bool = False
) -> Listing:
    """Return one line per run; a pipeline without a run had no work.

    Args:
        when: whether to show start times, and with `wide` run ids and kinds.
        name: whether to show pipeline names; not needed if all runs are of one.
    """
    from drawdown.cli.shown.listing import Heading, listing

    rows = list(rows)
    # Rare but important: a column of zeros would hide it, so it is shown only when needed.
    lost = any(run is not None and run.counts.lost for _, run in rows)
    columns = [
        *([Heading("run", wide=True), Heading("kind", wide=True), Heading("when (UTC)")] if when else ()),
        *([Heading("pipeline", "text")] if name else ()),
        Heading("state"),
        Heading("read", "number"),
        *(Heading(each, "number", wide=True) for each in _MORE),
        Heading("set aside", "number"),
        *([Heading("lost", "number")] if lost else ()),
        Heading("published", "number"),
        Heading("watermark (UTC)", wide=True),
        Heading("took", "number"),
    ]
    shown = ("read", *_MORE, "aside", *(["lost"] if lost else ()), "published")
    cells = [
        [*(_when(run) if when else ()), *([pipeline] if name else ()), *_cells(run, shown, wide)]
        for pipeline, run in rows
    ]
    return listing(columns, cells, wide=wide)


def progress_table(run: Run) -> Listing:
    """Return one line per recent batch of a run: its duration, and the state after it."""
    from drawdown.cli.shown.listing import Heading, count, duration, listing, plain

    columns = [
        Heading("batch", "number"),
        Heading("rows", "number"),
        Heading("took", "number"),
        Heading("state rows", "number"),
        Heading("state bytes", "number"),
        Heading("watermark (UTC)"),
    ]
    lines: list[list[Text | str]] = []
    for entry in run.progress:
        took, operators = entry["duration_ms"].get("triggerExecution"), entry["operators"]
        kept = state_rows(operators)
        memory = sum(operator["memory_bytes"] for operator in operators)
        lines.append(
            [
                plain(entry["batch_id"]),
                count(entry["rows"], exact=False),
                duration(None if took is None else took / 1_000),
                ("not counted" if kept is None else plain(kept)) if operators else "",
                plain(memory) if operators else "",
                in_utc(datetime.fromisoformat(entry["watermark"])) if entry["watermark"] else "",
            ]
        )
    return listing(columns, lines)


def run_values(run: Run) -> dict[str, Any]:
    """Return every field of a run record, and its duration; unknown figures are None."""
    values = {**asdict(run), "seconds": seconds(run)}
    values["progress"] = [with_known_rows(entry) for entry in run.progress]
    if not run.counted:
        values |= {"batches": None, "counts": dict.fromkeys(values["counts"])}
    return values


def seconds(run: Run) -> float | None:
    """Return the time from start to end; None while it runs."""
    if run.ended_at is None or run.started_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds(), 3)


def outcome(run: Run) -> str:
    """Combine state and verdict: the verdict of a successful run, else the state and a verdict if any."""
    if run.verdict is None:
        return run.state
    return run.verdict if run.state == "succeeded" else f"{run.state}, {run.verdict}"


def _when(run: Run | None) -> list[str]:
    from drawdown.cli.shown.listing import moment

    return ["", "", ""] if run is None else [run.run_id, run.kind, moment(run.started_at)]


def _cells(run: Run | None, counts: Sequence[str], wide: bool) -> list[Text | str]:
    from rich.text import Text

    from drawdown.cli.shown.listing import count, duration

    if run is None:
        return [Text("nothing new", "dim"), *[Text("-", "dim")] * len(counts), "", ""]
    known = asdict(run.counts)
    known["aside"] = sum(known[each] for each in _ASIDE)
    said = outcome(run)
    return [
        Text(said, _STYLES.get(said, _STYLES.get(run.state, ""))),
        *(count(known[each] if run.counted else None, exact=wide) for each in counts),
        in_utc(run.watermark) if run.watermark else "",
        duration(seconds(run)),
    ]
