"""docs/errors.md, made from the error registry: ``python -m dev.errors_page``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from drawdown.error_registry import ErrorEntry, error_entries

PAGE = Path(__file__).resolve().parents[1] / "docs" / "errors.md"
_INTRODUCTION = """\
# Errors

Look up the id that a command, a log or a run record shows. `drawdown explain ID` prints the same in the
terminal. The error itself says more exactly what was found, where, and what to do.

The exit code is that of the command and of the driver; *retry* means that a later try can succeed. A word in
place of the code is no error: a plan lists it (*refused*, *warning*, *allowed*, *note*), or the run record
does (*notice*). `python -m dev.errors_page` makes this page from the `errors.toml` of each room.
"""


def page() -> str:
    """The page's text."""
    lines = [_INTRODUCTION]
    for area, entries in groupby(error_entries().values(), key=lambda entry: entry.area):
        lines += [f"## {area}", "", "| id | exit code | meaning | what to do |", "|---|---|---|---|"]
        lines += [
            f"| `{each.id}` | {_code(each)} | {_cell(each.meaning)} | {_cell(each.remedy)} |"
            for each in entries
        ]
        lines.append("")
    return "\n".join(lines)


def _code(entry: ErrorEntry) -> str:
    """``5, retry or 8``; then what it is where it is only reported."""
    kinds = sorted(entry.raised, key=lambda kind: kind.exit_code)
    codes = " or ".join(f"{kind.exit_code}{', retry' if kind.transient else ''}" for kind in kinds)
    return "; ".join(filter(None, (codes, *entry.reported)))


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page())
