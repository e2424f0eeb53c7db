"""Counts what this process sends to object stores, by what is paid for (docs/cost.md).

Requests of delta-rs, which opens tables by itself, are not among them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

KINDS = ("list", "get", "head", "put", "delete")
"""A copy is a put, and so is each request of an upload in parts."""

_lock = threading.Lock()
_sent = dict.fromkeys(KINDS, 0)


def count(kind: str, times: int = 1) -> None:
    """Count requests that were sent."""
    with _lock:
        _sent[kind] += times


def sent() -> Mapping[str, int]:
    """Return the counts since the process began."""
    with _lock:
        return dict(_sent)
