"""What the preflight finds at one source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """Why a source needs a run, and how much waits there.

    Attributes:
        reasons: sentences; empty when there is nothing to do.
        backlog: files: ``files``, ``bytes``, ``too_old``; kafka: ``offsets`` {topic: count};
            delta: ``versions``. Empty when nobody can count it.
    """

    reasons: tuple[str, ...] = ()
    backlog: dict[str, Any] = field(default_factory=dict)
