"""Two clocks beside each other: the ages that one tells are only right by another that has the same time."""

from __future__ import annotations

from datetime import datetime

from drawdown.cli.doctor.finding import Check

_SECONDS_APART = 5.0
"""Less is the resolution of a store's times, and the way of an answer."""


def clock(whose: str, theirs: datetime, asked: datetime, answered: datetime, needed_by: str) -> Check:
    """The finding about a clock that is not this machine's.

    Args:
        theirs: what it said between `asked` and `answered`, which are of this machine.
        needed_by: what goes by both.
    """
    apart = (theirs - (asked + (answered - asked) / 2)).total_seconds()
    # An answer that took long says less.
    if abs(apart) < _SECONDS_APART + (answered - asked).total_seconds() / 2:
        return Check("clocks", "ok", f"this machine and the {whose} have the same time")
    way = "ahead of" if apart > 0 else "behind"
    what = f"the {whose}'s clock is {abs(apart):,.0f} s {way} this machine's; {needed_by}"
    return Check("clocks", "warn", what, "timedatectl set-ntp true   # on the machine that is wrong")
