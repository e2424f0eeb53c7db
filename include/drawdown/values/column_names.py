"""The column names of a .ddl text at a glance, for what reads the specs of 1,000 pipelines.

Whether the text is DDL, and what its types are, values/ddl.py says: it takes sqlglot, which costs the DAG
processor more than all specs together.
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
