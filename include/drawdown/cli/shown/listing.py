"""Listings: the default columns fit 80 characters, `--wide` shows all; nothing is cut off."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

UNKNOWN = Text("unknown", "dim")
"""Shown for unknown figures; they are never shown as 0."""
_LEAST_OF_TEXT = 10
"""Minimum width of a folded column."""
_BETWEEN = 2
_EXACT_BELOW = 1_000_000
_UNITS = (("G", 1e9), ("M", 1e6))


@dataclass(frozen=True)
class Heading:
    """One column.

    Attributes:
        kind: long text is folded over several lines; words and numbers are not.
        wide: shown only with `--wide`.
    """

    head: str
    kind: Literal["text", "word", "number"] = "word"
    wide: bool = False


@dataclass(frozen=True)
class Listing:
    """Rows under columns; falls back to one line per value if even folded texts do not fit."""

    columns: Sequence[Heading]
    rows: Sequence[Sequence[Text]]
    title: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._least_width() <= options.max_width:
            yield self._table()
        else:
            yield from self._lines()

    def _least_width(self) -> int:
        lines = [[Text(column.head) for column in self.columns], *self.rows]
        widths = [max(cell.cell_len for cell in cells) for cells in zip(*lines, strict=True)]
        least: list[int] = [
            min(width, _LEAST_OF_TEXT) if column.kind == "text" else width
            for column, width in zip(self.columns, widths, strict=True)
        ]
        return sum(least) + _BETWEEN * (len(least) - 1)

    def _table(self) -> Table:
        table = Table(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            padding=(0, 1, 0, 0),
            pad_edge=False,
            title=self.title or None,
            title_justify="left",
        )
        for column in self.columns:
            table.add_column(
                column.head,
                justify="right" if column.kind == "number" else "left",
                no_wrap=column.kind != "text",
                overflow="fold",
            )
        for row in self.rows:
            table.add_row(*row)
        return table

    def _lines(self) -> Iterator[Table | Text]:
        if self.title:
            yield Text(self.title, "italic")
        for row in self.rows:
            yield _facts(zip((column.head for column in self.columns), row, strict=True))
            yield Text("")


def listing(
    columns: Sequence[Heading],
    rows: Iterable[Sequence[Text | str]],
    *,
    wide: bool = False,
    title: str = "",
) -> Listing:
    """Make a Listing; every row has a cell for every column, shown or not."""
    shown = [index for index, column in enumerate(columns) if wide or not column.wide]
    cells = [[_as_text(row[index]) for index in shown] for row in rows]
    return Listing([columns[index] for index in shown], cells, title)


def records(rows: Sequence[Mapping[str, Any]], title: str = "") -> Listing:
    """Make a Listing from mappings, with a column for each name that occurs."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [
        Heading(
            name.replace("_", " "),
            "number" if all(isinstance(row.get(name), int | None) for row in rows) else "word",
        )
        for name in names
    ]
    return listing(columns, [[plain(row.get(name)) for name in names] for row in rows], title=title)


def facts(values: Mapping[str, Any]) -> Table:
    """Return a table with one name and value per line."""
    return _facts((name.replace("_", " "), Text(plain(value))) for name, value in values.items())


def plain(value: Any) -> str:
    """Format a cell: digits in groups of three, nested values as JSON, None as nothing."""
    if isinstance(value, Mapping | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else str(value)


def count(value: int | None, *, exact: bool) -> Text:
    """Format a number of rows in at most eight characters, or exactly; dim if 0 or unknown."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return Text("0", "dim")
    if exact or value < _EXACT_BELOW:
        return Text(f"{value:,}")
    # Rounded down: 999,999,999 rows are not 1 G.
    unit, size = next(each for each in _UNITS if value >= each[1])
    return Text(f"{int(value / size * 100) / 100:,.2f} {unit}")


def duration(seconds: float | None) -> str:
    """Format as `12.3s`, `4m10s`, `2h03m` or `3d04h`; empty if unknown."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours < 48 else f"{hours // 24}d{hours % 24:02}h"


def moment(at: datetime | None) -> str:
    """Format as month, day, hour and minute (UTC); in other years with the year instead of the time."""
    if at is None:
        return ""
    return f"{at:%m-%d %H:%M}" if at.year == datetime.now(UTC).year else f"{at:%Y-%m-%d}"


def _facts(values: Iterable[tuple[str, Text]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in values:
        table.add_row(name, value)
    return table


def _as_text(cell: Text | str) -> Text:
    return Text(cell) if isinstance(cell, str) else cell
