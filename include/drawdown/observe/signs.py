"""What figures and the clock say of a pipeline beside its runs: states that alerts, pages and status share.

A sentence is None where its state does not hold. It has the pipeline as its subject, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from drawdown.fleet.standing import Finding, State
from drawdown.values.text import counted, lasting

if TYPE_CHECKING:
    from drawdown.observe.figures import Glance, SourceBacklog

LATE_SHARE, LATE_ROWS = 0.1, 100
"""A flood: so great a part of the rows that the newest run read, and at least so many of them."""


def signs(seen: Glance) -> dict[State, Finding]:
    """Return what holds now, by state."""
    return dict(_signs(seen))


def _signs(seen: Glance) -> Iterator[tuple[State, Finding]]:
    name, bounds = seen.pipeline, seen.figures.bounds
    after = None if bounds.lagging_after is None else timedelta(seconds=bounds.lagging_after)
    found: tuple[tuple[State, str | None, str], ...] = (
        (
            "retention at risk",
            retention_at_risk(seen, timedelta(seconds=bounds.retention_left)),
            f"drawdown run {name}",
        ),
        ("lagging", lagging(seen, after), f"drawdown run {name}"),
        ("rebuild waiting", rebuild_waiting(seen), f"drawdown rebuild show {name}"),
        ("late flood", late_flood(seen), f"drawdown runs {name}"),
        (
            "quarantine growing",
            quarantine_growing(seen, bounds.quarantined_rows),
            f"drawdown quarantine list {name}",
        ),
    )
    for state, why, do in found:
        if why is not None:
            yield state, Finding(state, why, do)


def lagging(seen: Glance, after: timedelta | None) -> str | None:
    """Whether the oldest unread waits for longer than this; None: it may wait for ever."""
    since, worst = min(_waiting_since(seen), key=lambda found: found[0], default=(None, None))
    if after is None or since is None or worst is None or seen.now - since <= after:
        return None
    return f"{worst.amount:,} {worst.unit} wait at {worst.source}, the oldest for {rounded(seen.now - since)}"


def _waiting_since(seen: Glance) -> Iterator[tuple[datetime, SourceBacklog]]:
    """The sources where something waits, with the time since when it does at least."""
    for each in seen.figures.backlog:
        since = each.oldest or seen.figures.backlog_at
        if each.amount and since is not None:
            yield since, each


def retention_at_risk(seen: Glance, left: timedelta) -> str | None:
    """Whether the broker deletes what is unread within this time."""
    found = ((seen.headroom(each), each) for each in seen.figures.backlog)
    known = [(seconds, each) for seconds, each in found if seconds is not None]
    seconds, worst = min(known, key=lambda found: found[0], default=(0.0, None))
    if worst is None or seconds >= left.total_seconds():
        return None
    when = f"in {rounded(timedelta(seconds=seconds))}" if seconds else "now"
    return f"the broker deletes unread records of {worst.source} {when}"


def rebuild_waiting(seen: Glance) -> str | None:
    """Whether a rebuild waits for a decision."""
    rebuild = seen.figures.rebuild
    if rebuild is None:
        return None
    return f"the rebuild (generation {rebuild.generation}) is compared and waits for a decision"


def late_flood(seen: Glance) -> str | None:
    """Whether much of what the newest run read came behind the watermark."""
    last = seen.figures.last
    if last is None or not last.late or not last.read:
        return None
    if last.late < LATE_ROWS or last.late < LATE_SHARE * last.read:
        return None
    return f"{last.late:,} of {counted(last.read, 'row')} in its newest run came behind the watermark"


def quarantine_growing(seen: Glance, rows: int) -> str | None:
    """Whether the newest run set aside so many rows."""
    last = seen.figures.last
    if last is None or last.set_aside is None or last.set_aside < rows:
        return None
    return f"set aside {counted(last.set_aside, 'row')} in its newest run, of {last.read:,} read"


def rounded(time: timedelta) -> str:
    """Return a length of time in words; minutes are enough for what lasts longer than one."""
    seconds = int(time.total_seconds())
    return lasting(timedelta(seconds=seconds - seconds % 60 if seconds >= 60 else seconds))
