"""Path patterns with Hadoop's rules, so that listings here and in Spark agree.

Source of the rules: org.apache.hadoop.fs.GlobExpander (braces that hold a slash are expanded first)
and org.apache.hadoop.fs.GlobPattern (``*``, ``?``, ``[a-z]``, ``[^a]`` or ``[!a]``, ``{a,b}`` within a
name). Backslash escapes are refused before a pattern gets here (storage/containment.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_SPECIAL = frozenset("*?[{")
_MOST_PATTERNS = 2_000
"""Patterns that are looked at to expand one."""


@dataclass(frozen=True)
class Glob:
    """One pattern without braces that span folders.

    Attributes:
        prefix: the leading names without any wildcard, joined by ``/``; listing starts there.
        names: one compiled expression for every name after the prefix.
    """

    prefix: str
    names: tuple[re.Pattern[str], ...]

    @staticmethod
    def parse(pattern: str) -> list[Glob]:
        """Return the patterns that `pattern` stands for, one per expansion of its braces with slashes.

        Raises:
            WrongPattern: it is none, or stands for too many.
        """
        return [_parse_one(text) for text in expand(pattern)]

    def matches(self, names: tuple[str, ...]) -> bool:
        """Whether all names below the prefix match the pattern."""
        return len(names) == len(self.names) and self.starts(names)

    def starts(self, names: tuple[str, ...]) -> bool:
        """Whether the first names below the prefix match the pattern; more may follow."""
        return len(names) >= len(self.names) and all(
            expression.fullmatch(name) for expression, name in zip(self.names, names, strict=False)
        )

    def matches_name(self, name: str) -> bool:
        """Whether one name matches a pattern of one name."""
        return name == self.prefix if not self.names else self.matches((name,))


def _parse_one(pattern: str) -> Glob:
    names = [name for name in pattern.split("/") if name]
    plain = 0
    while plain < len(names) and not _SPECIAL & set(names[plain]):
        plain += 1
    return Glob("/".join(names[:plain]), tuple(_compile(name) for name in names[plain:]))


class WrongPattern(ValueError):
    """A pattern that is not followed."""


class TooManyPatterns(WrongPattern):
    """The braces of a pattern stand for more patterns than are looked at."""


def expand(pattern: str) -> list[str]:
    """Return the patterns after Hadoop's first step, which expands only braces that contain a slash.

    Raises:
        TooManyPatterns: Spark would expand them all, too.
    """
    found, waiting = list[str](), [pattern]
    for _ in range(_MOST_PATTERNS):
        if not waiting:
            return found
        text = waiting.pop()
        choices = _first_choices(text)
        if choices is None:
            found.append(text)
        else:
            waiting += reversed(choices)
        if len(found) + len(waiting) > _MOST_PATTERNS:
            break
    raise TooManyPatterns("braces that hold a slash stand for too many paths")


def is_expanded(pattern: str) -> bool:
    """Whether Hadoop expands braces of this text before it looks for a path."""
    return _first_choices(pattern) is not None


def _first_choices(pattern: str) -> list[str] | None:
    """Return what the first braces that hold a slash stand for; None if there are none."""
    depth, start = 0, 0
    for at, char in enumerate(pattern):
        if char == "{":
            start = at if depth == 0 else start
            depth += 1
        elif char == "}" and depth:
            depth -= 1
            if depth == 0 and "/" in pattern[start:at]:
                choices = _split_choices(pattern[start + 1 : at])
                return [pattern[:start] + choice + pattern[at + 1 :] for choice in choices]
    return None


def _split_choices(body: str) -> list[str]:
    choices, depth, start = [], 0, 0
    for at, char in enumerate(body):
        depth += (char == "{") - (char == "}")
        if char == "," and depth == 0:
            choices.append(body[start:at])
            start = at + 1
    return [*choices, body[start:]]


def _compile(name: str) -> re.Pattern[str]:
    """Return an expression that goes over a name once, whoever chose pattern and name.

    Python's ``re`` tries every way to share a name among several ``.*``, and among several choices. So
    choices are written out, and each ``*`` but the last takes as little as it can, once and for all.

    Raises:
        WrongPattern: a bracket holds no range; TooManyPatterns: the braces stand for too many names.
    """
    texts = _without_braces(_parts(name))
    # Like Hadoop, treat an unclosed brace as plain text.
    expression = re.escape(name) if texts is None else "|".join(map(_expression, texts))
    try:
        return re.compile(expression, re.DOTALL)
    except re.error as error:
        raise WrongPattern(f"{name[:60]!r} is no pattern: {error.msg}") from None


def _parts(name: str) -> list[str]:
    """Return the characters and the brackets of a name, in order."""
    parts, at = list[str](), 0
    while at < len(name):
        end = name.find("]", at + 2) if name[at] == "[" else -1
        parts.append(name[at : end + 1] if end > 0 else name[at])
        at += len(parts[-1])
    return parts


def _without_braces(name: list[str]) -> list[list[str]] | None:
    """Return what a name with braces stands for, as parts; None if a brace is not closed."""
    found, waiting = list[list[str]](), [name]
    while waiting:
        parts = waiting.pop()
        if "{" not in parts:
            found.append(parts)
            continue
        start, depth, commas = parts.index("{"), 0, list[int]()
        for at in range(start, len(parts)):
            depth += (parts[at] == "{") - (parts[at] == "}")
            if depth == 0:
                edges = [start, *commas, at]
                waiting += [
                    parts[:start] + parts[low + 1 : high] + parts[at + 1 :] for low, high in pairwise(edges)
                ]
                break
            if depth == 1 and parts[at] == ",":
                commas.append(at)
        else:
            return None
        if len(found) + len(waiting) > _MOST_PATTERNS:
            raise TooManyPatterns("braces stand for too many names")
    return found


def _expression(parts: list[str]) -> str:
    """Return parts without braces as an expression."""
    pieces = [""]
    for part in parts:
        if part == "*":
            pieces.append("")
        elif part == "?":
            pieces[-1] += "."
        elif len(part) > 1:
            body = re.sub(r"([\[\]\\&~|])", r"\\\1", part[1:-1])
            pieces[-1] += "[" + re.sub(r"^[!^]", "^", body) + "]"
        else:
            pieces[-1] += re.escape(part)
    first, *middle = pieces
    last = f".*{middle.pop()}" if middle else ""
    return first + "".join(f"(?>.*?{piece})" for piece in middle if piece) + last


def meets(pattern: str, folder: str) -> bool:
    """Whether a pattern and a plain path can reach the same files: their names match as far as both go.

    The rule is Spark's for the archive of a file source (FileStreamSource.SourceFileArchiver, "in depth").
    """
    names = folder.split("/")
    return any(
        all(
            Glob.parse(wanted)[0].matches_name(name)
            for wanted, name in zip(text.split("/"), names, strict=False)
        )
        for text in expand(pattern)
    )
