"""The column names of a .ddl text, read without Spark: enough to check that named columns are there.

What the types mean, and whether the text parses at all, Spark says when a run starts.
"""

from __future__ import annotations

import re

_WORD = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*`
    | [<>(),] | [^\s<>(),'"`:]+""",
    re.VERBOSE | re.DOTALL,
)


def column_names(ddl: str) -> list[str]:
    """Names in their order: the first word of each part between commas outside of < > and ( )."""
    names: list[str] = []
    depth, expected = 0, True
    for word in _WORD.findall(ddl):
        if word.startswith(("--", "/*")):
            continue
        if word in ("<", "("):
            depth += 1
        elif word in (">", ")"):
            depth -= 1
        elif word == ",":
            expected = expected or depth == 0
        elif expected:
            names.append(word[1:-1].replace("``", "`") if word[0] == "`" else word)
            expected = False
    return names
