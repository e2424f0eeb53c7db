"""Finds the known word closest to a misspelt one, for error messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean 'x'?`` for the closest of ``known``, else the list of known words (at most
    12)."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(word[:80].lower(), by_lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    names = sorted(by_lower.values())
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known here: {listed}" if names else "nothing is known here"
