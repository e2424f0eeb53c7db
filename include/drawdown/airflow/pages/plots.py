"""Charts with axes, drawn on the server as SVG from plain values, which the JSON twin of a page shows too.

A chart is a `Chart`; `draw` makes the picture. Each value has a title, the picture a text for screen readers,
and series differ by their names in the legend, not by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from markupsafe import Markup

from drawdown.values.text import in_utc

Unit = Literal["", "rows", "seconds", "bytes", "money"]
_WIDTH, _HEIGHT = 360, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 8, 8, 20
_WIDE, _ROW, _LABEL = 760, 16, 64
_SPANS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class Series:
    """Values by position; None where a value is not known."""

    name: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        kind: bars are stacked; lines connect what is known.
        at: the time of each position, oldest first.
        series: at most five.
        marks: of bars: one more series, drawn as a mark on each bar.
        note: what the figures rest on.
    """

    name: str
    kind: Literal["bars", "lines"]
    unit: Unit
    at: Sequence[datetime]
    series: Sequence[Series]
    marks: Series | None = None
    note: str = ""

    @property
    def is_empty(self) -> bool:
        return not any(value is not None for each in self.drawn for value in each.values)

    @property
    def drawn(self) -> list[Series]:
        return [*self.series, *([self.marks] if self.marks else [])]

    def style(self, number: int) -> str:
        """Return the class of a series in `drawn`."""
        return f"series-{number + 1}" if number < len(self.series) else "mark"

    @property
    def says(self) -> str:
        """What screen readers say: the name, the span of time, and the newest value of each series."""
        if self.is_empty:
            return f"{self.name}: nothing recorded"
        newest = ", ".join(f"{each.name} {shown(_last(each.values), self.unit)}" for each in self.drawn)
        return f"{self.name}, {in_utc(self.at[0])} to {in_utc(self.at[-1])} UTC. Newest: {newest}"


def draw(chart: Chart) -> Markup:
    """Return the picture of a chart."""
    top, ticks = _scale(chart)
    parts = [*_axes(chart, top, ticks), *(_bars(chart, top) if chart.kind == "bars" else _lines(chart, top))]
    return Markup('<svg class="plot" role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>').format(
        chart.says, _WIDTH, _HEIGHT, Markup("").join(parts)
    )


@dataclass(frozen=True)
class PlottedSpan:
    """A row of a timeline; times in seconds since its start."""

    label: str
    title: str
    start: float
    seconds: float
    outcome: str


def timeline(name: str, spans: Sequence[PlottedSpan], seconds: float) -> Markup:
    """Return rows of bars along one axis of time, the first row on top."""
    height = len(spans) * _ROW + 22
    width = _WIDE - _LABEL - 8
    total = max(seconds, max((each.start + each.seconds for each in spans), default=0), 0.001)
    rows = [
        Markup(
            '<g><title>{}</title><text x="{}" y="{}" text-anchor="end">{}</text>'
            '<rect class="of-{}" x="{}" y="{}" width="{}" height="{}"></rect></g>'
        ).format(
            each.title, _LABEL - 6, row * _ROW + 11, each.label, each.outcome,
            _n(_LABEL + each.start / total * width), row * _ROW + 2, _n(max(each.seconds / total * width, 2)),
            _ROW - 4,
        )
        for row, each in enumerate(spans)
    ]  # fmt: skip
    marks = [
        Markup(
            '<line class="axis" x1="{0}" x2="{0}" y1="0" y2="{1}"/><text x="{0}" y="{2}" {3}>{4}</text>'
        ).format(
            _n(_LABEL + part * width),
            height - 18,
            height - 5,
            Markup('text-anchor="{}"').format("start" if part == 0 else "end" if part == 1 else "middle"),
            shown(total * part, "seconds"),
        )
        for part in (0, 0.25, 0.5, 0.75, 1)
    ]
    return Markup('<svg class="plot" role="img" aria-label="{}" viewBox="0 0 {} {}">{}</svg>').format(
        name, _WIDE, height, Markup("").join([*marks, *rows])
    )


def shown(value: float | None, unit: Unit) -> str:
    """Return a value as its axis and titles show it."""
    if value is None:
        return "unknown"
    if unit == "seconds":
        return _span(value)
    if unit == "bytes":
        return _short(value, ("B", "kB", "MB", "GB", "TB"), " ")
    if unit == "money":
        return f"{value:.4g}"
    return _short(value, ("", "k", "M", "G", "T"), "")


def _axes(chart: Chart, top: float, ticks: Sequence[float]) -> list[Markup]:
    lines = [
        Markup(
            '<line class="axis" x1="{}" x2="{}" y1="{y}" y2="{y}"/>'
            '<text x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(
            _LEFT,
            _WIDTH - _RIGHT,
            _LEFT - 5,
            _n(_y(tick, top) + 4),
            shown(tick, chart.unit),
            y=_n(_y(tick, top)),
        )
        for tick in ticks
    ]
    if not chart.at:
        return lines
    ends = [(_LEFT, "start", chart.at[0])]
    if len(chart.at) > 1:
        ends.append((_WIDTH - _RIGHT, "end", chart.at[-1]))
    return lines + [
        Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
            x, _HEIGHT - 5, anchor, in_utc(at)[:16]
        )
        for x, anchor, at in ends
    ]


def _bars(chart: Chart, top: float) -> list[Markup]:
    step = (_WIDTH - _LEFT - _RIGHT) / max(len(chart.at), 8)
    width = max(step * 0.8, 1)
    found = []
    for position in range(len(chart.at)):
        x, below = _LEFT + position * step, 0.0
        drawn = [_box("hover", x, 0, step, _HEIGHT - _BOTTOM)]
        for style, each in enumerate(chart.series, start=1):
            value = each.values[position] or 0
            if value > 0:
                high, low = _y(below + value, top), _y(below, top)
                drawn.append(_box(f"series-{style}", x, high, width, max(low - high, 0.5)))
                below += value
        if chart.marks is not None and (mark := chart.marks.values[position]) is not None:
            drawn.append(_box("mark", x - step * 0.05, _y(mark, top) - 1.25, width * 1.1, 2.5))
        title = Markup("<title>{}</title>").format(_title(chart, position))
        found.append(Markup("<g>{}</g>").format(Markup("").join([title, *drawn])))
    return found


def _lines(chart: Chart, top: float) -> list[Markup]:
    where = _positions(chart.at)
    found = []
    for style, each in enumerate(chart.series, start=1):
        known = [(where[at], value) for at, value in enumerate(each.values) if value is not None]
        points = " ".join(f"{_n(x)},{_n(_y(value, top))}" for x, value in known)
        found.append(Markup('<polyline class="line line-{}" points="{}"/>').format(style, points))
    for position, x in enumerate(where):
        dots = [
            Markup('<circle class="series-{}" cx="{}" cy="{}" r="2.2"/>').format(
                style, _n(x), _n(_y(value, top))
            )
            for style, each in enumerate(chart.series, start=1)
            if (value := each.values[position]) is not None
        ]
        title = Markup("<title>{}</title>").format(_title(chart, position))
        hover = _box("hover", x - 3, 0, 6, _HEIGHT - _BOTTOM)
        found.append(Markup("<g>{}</g>").format(Markup("").join([title, hover, *dots])))
    return found


def _positions(at: Sequence[datetime]) -> list[float]:
    """Return where on the axis of time each time is."""
    width = _WIDTH - _LEFT - _RIGHT
    if len(at) < 2 or at[0] == at[-1]:
        return [_LEFT + width / 2] * len(at)
    total = (at[-1] - at[0]).total_seconds()
    return [_LEFT + (each - at[0]).total_seconds() / total * width for each in at]


def _title(chart: Chart, position: int) -> str:
    values = ", ".join(f"{each.name} {_exact(each.values[position], chart.unit)}" for each in chart.drawn)
    return f"{in_utc(chart.at[position])} UTC: {values}"


def _exact(value: float | None, unit: Unit) -> str:
    return f"{value:,.0f}" if value is not None and unit in ("", "rows") else shown(value, unit)


def _scale(chart: Chart) -> tuple[float, list[float]]:
    """Return the greatest value of the axis, and its ticks."""
    sums = [sum(each.values[at] or 0 for each in chart.series) for at in range(len(chart.at))]
    singles = [value for each in chart.drawn for value in each.values if value is not None]
    greatest = max([*(sums if chart.kind == "bars" else []), *singles, 0.0])
    if greatest <= 0:
        return 1.0, [0.0]
    step = _step(greatest / 3, chart.unit)
    count = int(-(-greatest // step))
    return step * count, [step * tick for tick in range(count + 1)]


def _step(least: float, unit: Unit) -> float:
    if unit == "seconds" and least >= 1:
        return next((each for each in _SPANS if each >= least), -(-least // 86_400) * 86_400)
    power = 1.0
    while power * 10 <= least:
        power *= 10
    while power > least:
        power /= 10
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least)
    return max(step, 1) if unit in ("", "rows", "bytes") else step


def _y(value: float, top: float) -> float:
    height = _HEIGHT - _TOP - _BOTTOM
    return _TOP + height - max(0.0, min(value / top, 1.0)) * height


def _box(style: str, x: float, y: float, width: float, height: float) -> Markup:
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        style, _n(x), _n(y), _n(width), _n(height)
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _short(value: float, units: Sequence[str], gap: str) -> str:
    for unit in units[:-1]:
        if abs(value) < 1_000:
            return f"{value:.3g}{gap}{unit}".rstrip()
        value /= 1_000
    return f"{value:.3g}{gap}{units[-1]}"


def _span(seconds: float) -> str:
    sign, seconds = ("-" if seconds < 0 else ""), abs(seconds)
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{sign}{seconds / length:.3g} {unit}"
    return f"{sign}{seconds:.3g} s" if seconds >= 1 or not seconds else f"{sign}{seconds * 1000:.0f} ms"


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
