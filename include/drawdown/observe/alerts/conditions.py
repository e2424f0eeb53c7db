"""Which alerts hold for a pipeline now, each as one sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from drawdown.observe.figures import Seen, SourceBacklog
from drawdown.observe.metrics import headroom
from drawdown.spec.alerts import ALERTS, Alert, Alerts
from drawdown.values.text import counted, lasting, utc

_LONGEST = 400
"""Characters of a sentence: error texts can be long, and a message on a telephone is not."""
_NOBODY_KNOWS = ""
"""In place of a sentence: what was announced before is neither confirmed nor over."""


def alerts_now(seen: Seen, settings: Alerts) -> dict[Alert, str | None]:
    """Return the sentence of each alert that the settings name; None where it does not hold.

    An alert that cannot be judged now is left out. While a run goes on nobody knows whether the failure of
    the run before is over.
    """
    said = {alert: _ASKED[alert](seen, settings) for alert in ALERTS if alert in settings.when}
    return {alert: _short(text) for alert, text in said.items() if text != _NOBODY_KNOWS}


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _failing(seen: Seen, settings: Alerts) -> str | None:
    found = seen.finding
    if found.state in ("failed", "refused"):
        word = "failed" if found.state == "failed" else "was refused"
        return f"{seen.pipeline} {word}: {found.why}"
    return _NOBODY_KNOWS if seen.holder == "active" else None


def _held(seen: Seen, settings: Alerts) -> str | None:
    held = seen.figures.held
    if held is None:
        return None
    return (
        f"{seen.pipeline} holds back {counted(held.slices, 'slice')} with {counted(held.rows, 'row')}:"
        f" release or discard before {utc(held.ends)}"
    )


def _stale(seen: Seen, settings: Alerts) -> str | None:
    if not seen.is_late or seen.age is None or seen.figures.promise is None:
        return None
    promise = lasting(timedelta(seconds=seen.figures.promise))
    return f"{seen.pipeline} has published nothing for {_rounded(seen.age)}; `freshness:` is {promise}"


def _waiting_since(seen: Seen) -> Iterator[tuple[datetime, SourceBacklog]]:
    """The sources where something waits, with the time since when it does at least."""
    for each in seen.figures.backlog:
        since = each.oldest or seen.figures.backlog_at
        if each.amount and since is not None:
            yield since, each


def _lagging(seen: Seen, settings: Alerts) -> str | None:
    bound = settings.lagging_after
    since, worst = min(_waiting_since(seen), key=lambda found: found[0], default=(None, None))
    if bound is None or since is None or worst is None or seen.now - since <= bound.delta:
        return None
    return (
        f"{seen.pipeline} is behind: {worst.amount:,} {worst.unit} wait at {worst.source},"
        f" the oldest for {_rounded(seen.now - since)}"
    )


def _retention(seen: Seen, settings: Alerts) -> str | None:
    left = ((headroom(seen, each), each) for each in seen.figures.backlog)
    known = [(seconds, each) for seconds, each in left if seconds is not None]
    seconds, worst = min(known, key=lambda found: found[0], default=(0.0, None))
    if worst is None or seconds >= settings.retention_left.delta.total_seconds():
        return None
    when = f"in {_rounded(timedelta(seconds=seconds))}" if seconds else "now"
    return f"{seen.pipeline} may lose rows: the broker deletes unread records of {worst.source} {when}"


def _rebuild(seen: Seen, settings: Alerts) -> str | None:
    rebuild = seen.figures.rebuild
    if rebuild is None:
        return None
    return (
        f"The rebuild of {seen.pipeline} (generation {rebuild.generation}) is compared"
        " and waits for a decision"
    )


def _quarantine(seen: Seen, settings: Alerts) -> str | None:
    last = seen.figures.last
    if last is None or last.set_aside is None:
        return _NOBODY_KNOWS
    if last.set_aside < settings.quarantined_rows:
        return None
    return (
        f"{seen.pipeline} set aside {counted(last.set_aside, 'row')} in its newest run, of {last.read:,} read"
    )


def _rounded(time: timedelta) -> str:
    """Minutes are enough for what lasts longer than one."""
    seconds = int(time.total_seconds())
    return lasting(timedelta(seconds=seconds - seconds % 60 if seconds >= 60 else seconds))


_ASKED: dict[Alert, Callable[[Seen, Alerts], str | None]] = {
    "failing": _failing,
    "held": _held,
    "stale": _stale,
    "lagging": _lagging,
    "retention": _retention,
    "rebuild": _rebuild,
    "quarantine": _quarantine,
}
