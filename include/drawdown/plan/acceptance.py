"""Which changes a person may accept for a checkpoint: other words of another version for the same operators.

A version of Spark or Drawdown may write an expression in another way; then state that means the same looks
changed. Nobody can tell that from the words alone, so all of this must hold: a version has changed, nothing
else of the spec has, and the operators name the same functions, columns and types in the same order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from drawdown.errors import RefusedError
from drawdown.plan.changes import SpecChange, changes, remedy
from drawdown.spec import Pipeline

_OPERATORS = ("state.kept", "state.operators")
_WORD = re.compile(r"[a-z_][\w.]*")
# An optimiser adds and leaves out casts.
_NO_MEANING = frozenset({"cast", "as"})


def accepted(pipeline: Pipeline, before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint's fingerprint with the operators in the words of now.

    Raises:
        RefusedError: ``accept.nothing``: it fits as it is; ``accept.meaning``: more than words changed.
    """
    found = changes(before, now)
    refused = [change for change in found if not change.allowed]
    if not refused:
        raise RefusedError(
            "accept.nothing",
            f"{pipeline.name} fits its checkpoint as it is",
            where=str(pipeline.folder / "pipeline.yaml"),
            do=f"drawdown run {pipeline.name}",
        )
    more = _more_than_words(found, before, now)
    if more:
        raise RefusedError(
            "accept.meaning",
            f"not only versions and the words of operators changed in {pipeline.name}: {more}",
            where=str(pipeline.folder / "pipeline.yaml"),
            do=remedy(pipeline.name),
        )
    return {**before, **{change.key: change.now for change in refused}}


def _more_than_words(found: list[SpecChange], before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What changed beside them; empty when nothing did."""
    harmless = [change for change in found if change.allowed and change.key in ("versions", "format")]
    others = [change for change in found if change not in harmless and change.key not in _OPERATORS]
    if others:
        return "; ".join(map(str, others))
    if before.get("versions") == now.get("versions"):
        return "the versions are the same, so the query is another"
    meant = [change for change in found if _words(change.before) != _words(change.now)]
    return "; ".join(str(change) for change in meant if change.key in _OPERATORS)


def _words(operators: Any) -> list[str]:
    """Names of functions, columns and types, in their order."""
    return [word for word in _WORD.findall(json.dumps(operators).lower()) if word not in _NO_MEANING]
