"""Which changes a person may accept: the same operators, described differently by another version.

Another version of Spark or Drawdown may print an expression differently, so that unchanged state looks
changed. The text alone does not prove that. So three things must hold: a version changed, nothing else in the
spec changed, and the operators name the same functions, columns and types in the same order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from drawdown.errors import RefusedError
from drawdown.plan.spec_changes import SpecChange, changes, remedy
from drawdown.spec import Pipeline

_OPERATORS = ("state.kept", "state.operators")
_WORD = re.compile(r"[a-z_][\w.]*")
# Optimisers add and remove casts.
_NO_MEANING = frozenset({"cast", "as"})


def accepted(pipeline: Pipeline, before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checkpoint's fingerprint with the operators as this version describes them.

    Raises:
        RefusedError: ``accept.nothing``: it already fits; ``accept.meaning``: more than the description
            changed.
    """
    found = changes(before, now)
    refused = [change for change in found if not change.allowed]
    if not refused:
        raise RefusedError(
            "accept.nothing",
            f"{pipeline.name} already fits its checkpoint",
            where=str(pipeline.folder / "pipeline.yaml"),
            do=f"drawdown run {pipeline.name}",
        )
    more = _more_than_words(found, before, now)
    if more:
        raise RefusedError(
            "accept.meaning",
            f"{pipeline.name}: more changed than versions and how they describe operators: {more}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do=remedy(pipeline.name),
        )
    return {**before, **{change.key: change.now for change in refused}}


def _more_than_words(found: list[SpecChange], before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what else changed; empty when nothing did."""
    harmless = [change for change in found if change.allowed and change.key in ("versions", "format")]
    others = [change for change in found if change not in harmless and change.key not in _OPERATORS]
    if others:
        return "; ".join(map(str, others))
    if before.get("versions") == now.get("versions"):
        return "the versions are the same, so the query itself changed"
    meant = [change for change in found if _words(change.before) != _words(change.now)]
    return "; ".join(str(change) for change in meant if change.key in _OPERATORS)


def _words(operators: Any) -> list[str]:
    """Return the names of functions, columns and types, in order."""
    return [word for word in _WORD.findall(json.dumps(operators).lower()) if word not in _NO_MEANING]
