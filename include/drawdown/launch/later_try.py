"""Whether a cluster is of a later try of the same task: an earlier one that comes back must leave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_of_a_later_try(by: Mapping[str, Any], mine: Mapping[str, Any]) -> bool:
    """Compare who requested a cluster with who requests one now."""
    if any(by.get(each) is None or by[each] != mine.get(each) for each in ("dag_run_id", "task_id")):
        return False
    return int(by.get("try_number", 0)) > int(mine.get("try_number", 0))
