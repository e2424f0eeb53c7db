"""The page of a quarantine: its newest rows by reason and run, as far as `samples:` shows them.

The one page that reads a table: bounded to the newest rows, whatever the size of the table.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from drawdown.quarantine.newest_rows import NewestRows, newest_rows
from drawdown.quarantine.row_states import MALFORMED, Choice, SetAside
from drawdown.spec import Pipeline, load_pipeline
from drawdown.spec.samples import SampleGate
from drawdown.values.json_text import read_json
from drawdown.workspace import Workspace

LOOKED_AT = 1_000
"""Rows that a page looks at: the newest."""
SHOWN = 50


@dataclass(frozen=True)
class RowFilter:
    """What is looked for: rows with this reason, of this run; an empty value takes all."""

    reason: str = ""
    run: str = ""

    def takes(self, row: SetAside) -> bool:
        return self.reason in ("", *row.reasons) and self.run in ("", row.run_id)


@dataclass(frozen=True)
class ReasonCount:
    """How many rows have a reason; a row with two reasons counts for both."""

    reason: str
    rows: int
    open: int
    newest: datetime | None


@dataclass(frozen=True)
class ShownRow:
    """One row; ``record``: its columns that `samples:` shows, as JSON or as they came, or ""."""

    row: SetAside
    place: str
    record: str


@dataclass(frozen=True)
class QuarantineView:
    """One quarantine.

    Attributes:
        found: the newest rows, before the filter.
        runs: ids of the runs that set them aside, newest first.
        taken: how many of them the filter takes; ``shown`` are the first.
        open: how many of the newest rows a replay by this choice asks for.
        choice: what the filter takes, as replays and drops choose.
        replay: the command that replays it; ``drop`` likewise.
    """

    found: NewestRows
    reasons: Sequence[ReasonCount]
    runs: Sequence[str]
    taken: int
    open: int
    shown: Sequence[ShownRow]
    choice: Choice
    replay: str
    drop: str


def quarantine_view(workspace: Workspace, name: str, wanted: RowFilter) -> QuarantineView:
    """Return the page of a pipeline's quarantine.

    Raises:
        SpecError: its spec cannot be read.
        RefusedError: ``quarantine.none``.
        SourceError: the table cannot be read.
    """
    pipeline = load_pipeline(workspace.project, name)
    found = newest_rows(workspace, pipeline, LOOKED_AT)
    taken = [row for row in found.rows if wanted.takes(row)]
    choice = _choice(wanted, taken)
    options = _options(choice)
    return QuarantineView(
        found,
        _reasons([row for row in found.rows if wanted.run in ("", row.run_id)]),
        list(dict.fromkeys(row.run_id for row in found.rows)),
        len(taken),
        sum(choice.replays(row) for row in found.rows),
        [ShownRow(row, _place(row), _record(pipeline, row)) for row in taken[:SHOWN]],
        choice,
        shlex.join(["drawdown", "quarantine", "replay", name, *options]),
        shlex.join(["drawdown", "quarantine", "drop", name, *options]) + " --why ...",
    )


def _reasons(rows: Sequence[SetAside]) -> list[ReasonCount]:
    pairs = [(reason, row) for row in rows for reason in row.reasons]
    counts = Counter(reason for reason, _ in pairs)
    waiting = Counter(reason for reason, row in pairs if row.state == "open")
    newest: dict[str, datetime] = {}
    for reason, row in pairs:
        if row.set_aside_at is not None:
            newest[reason] = max(newest.get(reason, row.set_aside_at), row.set_aside_at)
    return [ReasonCount(each, n, waiting[each], newest.get(each)) for each, n in counts.most_common()]


def _choice(wanted: RowFilter, taken: Sequence[SetAside]) -> Choice:
    """The filter as a choice, which knows batches and no runs."""
    batches = sorted({row.batch_id for row in taken}) if wanted.run else []
    return Choice(rules=(wanted.reason,) if wanted.reason else (), batches=tuple(batches))


def _options(choice: Choice) -> list[str]:
    return [
        *(part for rule in choice.rules for part in ("--rule", rule)),
        *(part for batch in choice.batches for part in ("--batch", str(batch))),
    ]


def _place(row: SetAside) -> str:
    if row.topic is not None:
        return f"{row.topic} {row.partition}@{row.offset}"
    return row.file or ""


def _record(pipeline: Pipeline, row: SetAside) -> str:
    gate: SampleGate = pipeline.sample_gate
    if gate.samples == "all":
        return row.parsed or row.payload or ""
    if MALFORMED in row.reasons or row.parsed is None:
        return ""  # which columns its text holds is not known
    values: Any = read_json(row.parsed)
    if not isinstance(values, dict):
        return ""
    checks = [rule.check for rule in pipeline.quality.rules if rule.name in row.reasons]
    judged = [name for name in values if any(_names(check, name) for check in checks)]
    shown = gate.row(values, judged)
    return json.dumps(shown, ensure_ascii=False) if shown else ""


def _names(check: str, column: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(column)}(?!\w)", check, re.IGNORECASE) is not None
