"""Read JSON that somebody else has written: a supplier of data, or a program behind a bucket or a topic.

`json.loads` answers a document of some thousand nested arrays with RecursionError, which is no ValueError,
and what it returns for a few hundred can end the code that walks through it. Text that others can write is
read here, so that it is either a value of ordinary depth or a ValueError.
"""

from __future__ import annotations

import json
import re
from typing import Any

NESTING = 200
"""Levels of arrays and objects that a document may have, unless the caller has a limit of its own."""

# Brackets inside strings do not nest. A string that is cut off ends the document.
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|$)', re.DOTALL)
_OPENS, _CLOSES = "[{", "]}"


class TooDeepError(ValueError):
    """The text nests deeper than its reader allows."""


def read_json(text: str | bytes, nesting: int = NESTING, **options: Any) -> Any:
    """Return the value of a JSON text, as `json.loads` with these options.

    Raises:
        ValueError: it is no JSON, no text, or (TooDeepError) nests deeper than `nesting`.
    """
    decoded = text if isinstance(text, str) else text.decode(json.detect_encoding(text))
    refuse_deep(decoded, nesting)
    try:
        return json.loads(decoded.removeprefix("\ufeff"), **options)
    except RecursionError:  # the caller is itself deep in calls
        raise TooDeepError(f"it nests deeper than {nesting} levels") from None


def refuse_deep(text: str, nesting: int = NESTING) -> None:
    """Raise TooDeepError for text with more than `nesting` arrays and objects around a value."""
    # Most documents have fewer brackets than levels are allowed.
    if text.count("[") + text.count("{") <= nesting:
        return
    depth = 0
    for mark in re.findall(r"[\[\]{}]", _STRING.sub("", text)):
        depth += 1 if mark in _OPENS else -1
        if depth > nesting:
            raise TooDeepError(f"it nests deeper than {nesting} levels")
