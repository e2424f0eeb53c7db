"""Formats the comparison of a rebuild with the live output, for a person to decide."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_SIDES = {"live": "live", "shadow": "rebuilt"}
_SAID = ("nulls", "distinct", "min", "max", "sum")


def comparison_lines(comparison: Mapping[str, Any]) -> list[str]:
    """Return one line per fact: counts first, then columns; no rows.

    Args:
        comparison: as drawdown.rebuild.spark_comparison makes it.
    """
    return list(_lines(comparison))


def _lines(of: Mapping[str, Any]) -> Iterator[str]:
    rows, late = of["rows"], of["late"]
    yield f"compared: {of['compared']} (live: version {of['live_version']} of the table)"
    yield f"rows: {rows['live']:,} live, {rows['shadow']:,} rebuilt"
    what = "rows" if of["changed"] is None else "keys"
    changed = "" if of["changed"] is None else f", {of['changed']:,} with different rows"
    yield f"{what}: {of['only_live']:,} only live, {of['only_shadow']:,} only rebuilt{changed}"
    yield f"dropped as late: {late['live']:,} live, {late['shadow']:,} rebuilt"
    for how, names in of["columns"].items():
        if names:
            yield f"columns {how}: {', '.join(names)}"
    if readers := of.get("readers"):
        yield (
            f"streamed by {', '.join(readers)}: a swap is refused if one side has read further by then, and"
            " a roll back once more rows were drained: readers would get these rows twice, or never"
        )
    live, shadow = of["aggregates"]["live"], of["aggregates"]["shadow"]
    for column in live:
        differs = [what for what in _SAID if live[column].get(what) != shadow[column].get(what)]
        if differs:
            said = (f"{what} {live[column].get(what)} → {shadow[column].get(what)}" for what in differs)
            yield f"column {column}: {', '.join(said)}"


def sample_lines(comparison: Mapping[str, Any]) -> list[str]:
    """Return the sample of differing rows."""
    return [
        f"  {_SIDES[each['side']]}, {each['times']} more: {json.dumps(each['row'], ensure_ascii=False)}"
        for each in comparison["sample"]
    ]
