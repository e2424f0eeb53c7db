"""Another clock for programs: by libfaketime, since all processes of a machine share its own."""

from __future__ import annotations

from dev.test_programs import FAKETIME


def clock_ahead(seconds: int) -> dict[str, str]:
    """Return the variables with which a program and those that it starts have another clock."""
    # Not FAKETIME_DONT_FAKE_MONOTONIC: with it Python's sleep fails, and Java's waits end at once.
    return {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{seconds:+d}s"}
