"""Finds and hides secrets in keys and texts of a spec: specs are committed and seen by others."""

from __future__ import annotations

import re
from typing import Any

_WORDS = r"passw(?:or)?d|passphrase|secret|token|(?:access|account|api|private)[._\-]?key|credential|jaas"
_KEY = re.compile(rf"(?:{_WORDS}(?!s\.provider))", re.IGNORECASE)
# In a text: -Dx.password=..., password="...", X_TOKEN: ..., --password ...
_ASSIGNED = re.compile(
    rf"(?P<name>[\w.\-]*(?:{_WORDS})[\w.\-]*)[\"']?\s*[=:]\s*[\"']?[^\s\"';,]"
    rf"|(?<!\S)--?(?P<option>[\w.\-]*(?:{_WORDS})[\w\-]*)\s+[^\s\-]",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"://[^/@\s:]*:[^/@\s]+@")
# Names like these say where a secret is, or what creates one.
_PLACES = re.compile(
    r"(?:provider|class|impl|file|path|location|type|endpoint|url|enabled|expiration|name)s?$", re.IGNORECASE
)
_HIDDEN = "… this line is not shown: it may hold a secret"


def names_a_secret(key: str) -> bool:
    """Whether a key with this name holds a secret."""
    return bool(_KEY.search(key))


def holds_a_secret(value: Any) -> bool:
    """Whether a text sets a value for a secret's name, or contains a login in an address.

    Covers JVM options (`-Dx.password=...`), program options (`--token ...`), JAAS entries and URLs.
    """
    if not isinstance(value, str):
        return False
    if _IN_ADDRESS.search(value):
        return True
    return any(not _PLACES.search(found["name"] or found["option"]) for found in _ASSIGNED.finditer(value))


def without_secrets(text: str) -> str:
    """Return a text for people to read, without the lines that may hold a secret."""
    return "\n".join(_HIDDEN if holds_a_secret(line) else line for line in text.splitlines())
