"""What the preflight finds at one source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_UNITS = ("files", "offsets", "versions", "rows")


@dataclass(frozen=True)
class SourceFinding:
    """Why a source needs a run, and how much waits there.

    Attributes:
        reasons: sentences; empty when there is nothing to do.
        backlog: files: ``files``, ``bytes``, ``too_old``, ``rewritten``; kafka: ``offsets`` {topic: count};
            delta: ``versions``; another kind counts in one of these or in ``rows``. While something waits,
            where it is known: ``oldest``, when the oldest unread arrived (ISO), and ``headroom``, for how
            many seconds the broker keeps that at least. Empty when it is unknown.
        settled_ms: until when a run should wait, because a file may still be written; milliseconds
            since 1970 UTC, 0 when it need not wait.
    """

    reasons: tuple[str, ...] = ()
    backlog: dict[str, Any] = field(default_factory=dict)
    settled_ms: int = 0


def backlog_size(backlog: Mapping[str, Any]) -> tuple[int, str] | None:
    """Return how much waits at a source, and the unit; None when it is unknown."""
    for unit in _UNITS:
        if unit in backlog:
            waiting = backlog[unit]
            return (sum(waiting.values()) if isinstance(waiting, Mapping) else int(waiting)), unit
    return None


def waiting_text(backlog: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what waits at each source with a backlog, in words: "flights 3 files, weather 120 offsets"."""
    sizes = [(source, backlog_size(found)) for source, found in backlog.items()]
    return ", ".join(f"{source} {size[0]:,} {size[1]}" for source, size in sizes if size and size[0])
