"""Compares two clocks: ages measured across machines are right only if their clocks agree."""

from __future__ import annotations

from datetime import datetime

from drawdown.cli.doctor.finding import Check

_SECONDS_APART = 5.0
"""Smaller differences come from a store's time resolution and the network delay."""


def clock(whose: str, theirs: datetime, asked: datetime, answered: datetime, needed_by: str) -> Check:
    """Compare another clock with this machine's.

    Args:
        theirs: its time, read between `asked` and `answered` (this machine's times).
        needed_by: what depends on both clocks.
    """
    apart = (theirs - (asked + (answered - asked) / 2)).total_seconds()
    # A slow answer is less precise.
    if abs(apart) < _SECONDS_APART + (answered - asked).total_seconds() / 2:
        return Check("clocks", "ok", f"the clocks of this machine and the {whose} agree")
    way = "ahead of" if apart > 0 else "behind"
    what = f"the {whose}'s clock is {abs(apart):,.0f} s {way} this machine's; {needed_by}"
    return Check("clocks", "warn", what, "timedatectl set-ntp true   # on the machine that is wrong")
