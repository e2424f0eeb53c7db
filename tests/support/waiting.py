"""Waiting for a fact, instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(fact: Callable[[], T | None], seconds: float = 240) -> T:
    """What `fact` returns once that is true; asked again and again until then."""
    deadline = time.monotonic() + seconds
    while not (found := fact()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(0.2)
    return found
