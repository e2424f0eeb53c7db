"""Which alerts hold for a pipeline now, each as one sentence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from drawdown.observe import signs
from drawdown.observe.figures import Seen
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
    return f"{seen.pipeline} has published nothing for {signs.rounded(seen.age)}; `freshness:` is {promise}"


def _lagging(seen: Seen, settings: Alerts) -> str | None:
    bound = settings.lagging_after
    why = signs.lagging(seen, None if bound is None else bound.delta)
    return None if why is None else f"{seen.pipeline} is behind: {why}"


def _retention(seen: Seen, settings: Alerts) -> str | None:
    why = signs.retention_at_risk(seen, settings.retention_left.delta)
    return None if why is None else f"{seen.pipeline} may lose rows: {why}"


def _rebuild(seen: Seen, settings: Alerts) -> str | None:
    why = signs.rebuild_waiting(seen)
    return None if why is None else f"{seen.pipeline}: {why}"


def _quarantine(seen: Seen, settings: Alerts) -> str | None:
    last = seen.figures.last
    if last is None or last.set_aside is None:
        return _NOBODY_KNOWS
    why = signs.quarantine_growing(seen, settings.quarantined_rows)
    return None if why is None else f"{seen.pipeline} {why}"


_ASKED: dict[Alert, Callable[[Seen, Alerts], str | None]] = {
    "failing": _failing,
    "held": _held,
    "stale": _stale,
    "lagging": _lagging,
    "retention": _retention,
    "rebuild": _rebuild,
    "quarantine": _quarantine,
}
