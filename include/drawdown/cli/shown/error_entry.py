"""An entry of the error registry, and the index of all, in 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from itertools import groupby

from drawdown.error_registry import ErrorEntry

_WIDTH = 80
_INDENT = 14
_REPORTED = {
    "refused": "refused by a plan: nothing is started",
    "warning": "warning of a plan and of the run record: the run continues",
    "allowed": "allowed change of a plan",
    "note": "note of a plan",
    "notice": "notice of the run record: the run continues",
}


def entry_page(entry: ErrorEntry) -> str:
    """All that is known of an id."""
    kinds = [kind.__name__ for kind in entry.raised] + [_REPORTED[each] for each in entry.reported]
    rows = [("kind", "; ".join(kinds))]
    if entry.raised:
        rows.append(("exit code", " or ".join(map(str, entry.exit_codes))))
        rows.append(("retry", _retry(entry)))
    rows += [("meaning", entry.meaning), ("what to do", entry.remedy)]
    return f"{entry.id}\n" + "".join(_row(label, text) for label, text in rows)


def entry_index(entries: Iterable[ErrorEntry]) -> str:
    """The names by area. ``entries`` are in alphabetical order."""
    areas = groupby(entries, key=lambda entry: entry.area)
    rows = [_row(area, ", ".join(e.id.partition(".")[2] for e in of_area)) for area, of_area in areas]
    return "".join(rows) + "\ndrawdown explain AREA.NAME   # its meaning, and what to do\n"


def _retry(entry: ErrorEntry) -> str:
    helps = {kind.transient for kind in entry.raised}
    if helps == {True, False}:
        able = " or ".join(kind.__name__ for kind in entry.raised if kind.transient)
        return f"can help when it is a {able}"
    return "can help" if True in helps else "does not help"


def _row(label: str, text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH - _INDENT, break_long_words=False, break_on_hyphens=False)
    return "".join(f"  {label if at == 0 else '':<{_INDENT - 2}}{line}\n" for at, line in enumerate(lines))
