"""The report of a failed case: missing and unexpected rows; of similar pairs, only the differences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from drawdown.testing.cases.case_rows import Difference, Row
from drawdown.testing.cases.running import Result

_SHOWN = 10
"""Rows of a difference that are shown."""
_WIDTH = 80
_VALUE = 60


def difference_lines(result: Result) -> list[str]:
    """Return lines of at most 80 columns, the last with what to do; none when nothing differs."""
    lines: list[str] = []
    for found in result.differences:
        lines += _of_table(result.waves, found)
    if lines:
        kinds = ", ".join(f"wave{result.waves}.{_FILES[found.table]}.*" for found in result.differences)
        lines += _wrapped(
            "do: ", f"correct the transform or the spec; or, where it is right, the rows of {kinds}"
        )
        lines += _wrapped("    in ", f"include/pipelines/{result.pipeline}/tests/{result.case}")
    return lines


_FILES = {"output": "expected", "quarantine": "quarantine"}


def _of_table(wave: int, found: Difference) -> Iterator[str]:
    missing, unexpected = len(found.missing), len(found.unexpected)
    yield f"after wave {wave} the {found.table} differs: {missing} missing, {unexpected} unexpected"
    pairs = _paired(found.missing, found.unexpected)
    near = pairs.near
    for wanted, there in near[:_SHOWN]:
        columns = list(zip(found.columns, wanted, there, strict=True))
        yield from _wrapped("  ~ ", _named([(n, w) for n, w, t in columns if w == t]) or "one row")
        for name, value, instead in columns:
            if value != instead:
                yield from _wrapped("      ", f"{name}: expected {_text(value)}, found {_text(instead)}")
    left = max(_SHOWN - len(near), 0)
    for sign, rows in (("- missing: ", pairs.missing), ("+ unexpected: ", pairs.unexpected)):
        for row in rows[:left]:
            yield from _wrapped(f"  {sign}", _named(list(zip(found.columns, row, strict=True))))
    hidden = len(near[_SHOWN:]) + len(pairs.missing[left:]) + len(pairs.unexpected[left:])
    if hidden:
        yield f"  and {hidden} more"


@dataclass(frozen=True)
class _Paired:
    """Pairs of an expected row and the one found instead, and the rows left over on each side."""

    near: list[tuple[Row, Row]]
    missing: list[Row]
    unexpected: list[Row]


def _paired(missing: Sequence[Row], unexpected: Sequence[Row]) -> _Paired:
    """Pair rows that agree in at least half of their columns, by the best match; return the others too."""
    near, alone, left = [], [], list(unexpected)
    for wanted in missing[: 20 * _SHOWN]:
        best = max(left, key=lambda row: _alike(wanted, row), default=None)
        if best is not None and 2 * _alike(wanted, best) >= len(wanted) > 1:
            near.append((wanted, best))
            left.remove(best)
        else:
            alone.append(wanted)
    return _Paired(near, [*alone, *missing[20 * _SHOWN :]], left)


def _alike(one: Row, other: Row) -> int:
    return sum(a == b for a, b in zip(one, other, strict=True))


def _named(values: Sequence[tuple[str, str | None]]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in values)


def _text(value: str | None) -> str:
    if value is None:
        return "NULL"
    return value if len(value) <= _VALUE else f"{value[:_VALUE]}…"


def _wrapped(first: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False
    )
