"""Whether a query can continue with another's state, judged by what both keep (query/state/).

Spark itself compares only the types of what is in state, and whether a value may be NULL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

_NEVER_NULL = " not null"
_SIDES = ("left", "right")
_LISTS = ("values", "keys", "left_keys", "right_keys", "left", "right")


def fits(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> bool:
    """Whether every operator finds the state that it would have written itself."""
    return len(before) == len(now) and all(map(_operator_fits, before, now))


def said(operator: Mapping[str, Any]) -> str:
    """Describe one operator in a sentence."""
    if "left" in operator:
        pairs = zip(operator["left_keys"], operator["right_keys"], strict=True)
        keys = " and ".join(" = ".join(pair) for pair in pairs) or "nothing"
        sides = [f"{', '.join(operator[side])} of the {side}{_bound(operator, side)}" for side in _SIDES]
        held = [f" if {' and '.join(operator['condition'])}"] if operator.get("condition") else []
        return f"{operator['operator']} on {keys}{''.join(held)}, keeping {' and '.join(sides)}"
    if "values" in operator:
        values = ", ".join(operator["values"]) or "no aggregate"
        return f"{values} by {', '.join(operator['keys']) or 'nothing'}"
    if "keys" in operator:
        first, how = operator["operator"].split(" ", 1)
        return f"{first} of {', '.join(operator['keys'])} {how}"
    return str(operator["operator"])


def _bound(operator: Mapping[str, Any], side: str) -> str:
    until = operator["until"][side]
    return "" if until is None else f" from {until} ms behind the watermark"


def _operator_fits(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    if any(before.get(key) != now.get(key) for key in ("operator", "condition")):
        return False
    if not all(_columns_fit(before.get(key, ()), now.get(key, ())) for key in _LISTS):
        return False
    return all(_remembers(before["until"][side], now["until"][side]) for side in before.get("until", ()))


def _columns_fit(before: Sequence[str], now: Sequence[str]) -> bool:
    """A column that was never NULL may become nullable; not the other way round."""
    return all(old in (new, f"{new}{_NEVER_NULL}") for old, new in zip_longest(before, now))


def _remembers(before: int | None, now: int | None) -> bool:
    """Whether a side of a join still keeps all rows that are needed now."""
    return before is None or (now is not None and now >= before)
