"""The known word nearest to a misspelt one, for errors that teach."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` for the nearest of ``known``, else the list of them (at most 12)."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(word[:80].lower(), by_lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    names = sorted(by_lower.values())
    listed = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known here: {listed}" if names else "nothing is known here"
