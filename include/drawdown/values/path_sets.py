"""Sets of paths, as a spec names them: all that a pattern can ever match, not only what exists now.

A pattern is Hadoop's (values/globs.py has its rules). It becomes a small automaton, and two sets are compared
by walking both at once, so that braces are never expanded. What is odd (an unclosed bracket, a brace inside
one, dozens of wildcards) stands for anything: a set may be too large, never too small.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

_SPECIAL = frozenset("*?[{")
# In a bracket, GlobPattern turns these into parts of a Java expression.
_ODD_IN_CLASS = frozenset("[{},/\\&^!*?")
_MOST_SPECIAL = 32
"""Wildcards, brackets and braces of a pattern; one with more stands for anything."""
_STEPS = 2_500
"""Pairs of states after which sets are taken to meet: patterns that are made to be slow are refused."""
_WIDEST = 1_000
"""Characters of a range; a wider one stands for any character."""


class _Odd(Exception):
    """The pattern is not one that Hadoop and we surely read alike."""


@dataclass(frozen=True)
class _Chars:
    """The characters that one step takes: these, or all but these."""

    these: frozenset[str]
    others: bool = False

    def meets(self, other: _Chars) -> bool:
        """Whether both take one character."""
        if self.others:
            return other.others or not other.these <= self.these
        return not (self.these <= other.these if other.others else self.these.isdisjoint(other.these))

    def takes(self, char: str) -> bool:
        return (char in self.these) != self.others


_OF_NAMES = _Chars(frozenset("/"), others=True)
_ANY = _Chars(frozenset(), others=True)
_SLASH = _Chars(frozenset("/"))


class _Automaton:
    """A nondeterministic automaton; it begins in state 0, and a match ends in `end` or goes on below it."""

    def __init__(self, fixed: str, pattern: str) -> None:
        self.steps: list[list[tuple[_Chars, int]]] = []
        self.free: list[list[int]] = []
        at = self._state()
        for char in fixed:
            at = self._step(at, _Chars(frozenset(char)))
        start = at
        try:
            if sum(char in _SPECIAL for char in pattern) > _MOST_SPECIAL:
                raise _Odd
            at, _ = self._sequence(at, pattern, 0, depth=0)
        except _Odd:
            at = self._step(start, _SLASH)
            self.steps[at].append((_ANY, at))
        self.end = at
        below = self._step(at, _SLASH)
        self.steps[below].append((_ANY, below))
        self.ends = {self.end, below}

    def _state(self) -> int:
        self.steps.append([])
        self.free.append([])
        return len(self.steps) - 1

    def _step(self, at: int, chars: _Chars) -> int:
        to = self._state()
        self.steps[at].append((chars, to))
        return to

    def _sequence(self, at: int, text: str, read: int, depth: int) -> tuple[int, int]:
        """Add what a pattern says from one character on, up to its end or the end of a choice in braces."""
        while read < len(text):
            char = text[read]
            if char == "{":
                at, read = self._choices(at, text, read + 1, depth + 1)
                continue
            if depth and char in ",}":
                return at, read
            if char == "*":
                around = self._state()
                self.free[at].append(around)
                self.steps[around].append((_OF_NAMES, around))
                at = around
            elif char == "[":
                chars, read = _bracket(text, read)
                at = self._step(at, chars)
            else:
                at = self._step(at, _OF_NAMES if char == "?" else _Chars(frozenset(char)))
            read += 1
        if depth:
            raise _Odd
        return at, read

    def _choices(self, at: int, text: str, read: int, depth: int) -> tuple[int, int]:
        after = self._state()
        while True:
            begin = self._state()
            self.free[at].append(begin)
            ended, read = self._sequence(begin, text, read, depth)
            self.free[ended].append(after)
            if text[read] == "}":
                return after, read + 1
            read += 1


def _bracket(text: str, at: int) -> tuple[_Chars, int]:
    """Return what a bracket that opens here takes, and where it closes."""
    end = text.find("]", at + 2)
    body = text[at + 1 : end]
    others = body[:1] in ("^", "!")
    body = body[1:] if others else body
    if end < 0 or not body or body.startswith("]") or _ODD_IN_CLASS & set(body):
        raise _Odd
    these, read = set[str](), 0
    while read < len(body):
        low, high = body[read], body[read]
        if body[read + 1 : read + 2] == "-" and read + 2 < len(body):
            high = body[read + 2]
            read += 2
        width = ord(high) - ord(low)
        if width < 0 or (others and width > _WIDEST):
            raise _Odd
        if width > _WIDEST:
            return _OF_NAMES, end
        these |= {chr(code) for code in range(ord(low), ord(high) + 1)}
        read += 1
    return (_Chars(frozenset(these | {"/"}), others=True) if others else _Chars(frozenset(these))), end


@dataclass(frozen=True)
class PathSet:
    """The paths that a pattern matches below a root, and everything below them.

    Attributes:
        text: root and pattern.
        fixed: the leading names without wildcards.
    """

    text: str
    fixed: str
    _rest: str = ""

    @classmethod
    def of(cls, root: str, pattern: str) -> PathSet:
        """Return the paths of a pattern; nothing in `root` is a wildcard."""
        names = pattern.split("/")
        plain = next((at for at, name in enumerate(names) if _SPECIAL & set(name)), len(names))
        fixed = "/".join([root.rstrip("/"), *names[:plain]])
        rest = "".join(f"/{name}" for name in names[plain:])
        return cls(f"{root.rstrip('/')}/{pattern}", fixed, rest)

    @classmethod
    def one(cls, path: str) -> PathSet:
        """Return one path, in which nothing is a wildcard, and everything below it."""
        return cls(path, path.rstrip("/"))

    @property
    def is_plain(self) -> bool:
        """Whether it has no wildcards."""
        return not self._rest

    @cached_property
    def _automaton(self) -> _Automaton:
        return _Automaton(self.fixed, self._rest)

    def meets(self, other: PathSet) -> bool:
        """Whether a path of one can be a path of the other, lie in it or hold it."""
        if not (lies_in(self.fixed, other.fixed) or lies_in(other.fixed, self.fixed)):
            return False
        if self.is_plain and other.is_plain:
            return True
        return _meets(*sorted((self, other), key=lambda each: (each.fixed, each._rest)))

    def is_within(self, folders: Iterable[str]) -> bool:
        """Whether every path that it can match is one of these folders, or lies in one."""
        whole = tuple(folder.rstrip("/") for folder in folders)
        if self.is_plain:
            return any(lies_in(self.fixed, folder) for folder in whole)
        return _is_within(self._automaton, whole)


def lies_in(path: str, folder: str) -> bool:
    """Whether a path is a folder, or lies in it."""
    return f"{path}/".startswith(f"{folder}/")


@lru_cache(10_000)
def _meets(one: PathSet, other: PathSet) -> bool:
    """Whether two sets meet; each source is compared with each other in both directions."""
    return _meet(one._automaton, other._automaton)


def _meet(one: _Automaton, other: _Automaton) -> bool:
    seen = {(0, 0)}
    left = [(0, 0)]
    while left:
        a, b = left.pop()
        if (a in one.ends and b in other.ends) or len(seen) > _STEPS:
            return True
        for pair in [(to, b) for to in one.free[a]] + [(a, to) for to in other.free[b]]:
            if pair not in seen:
                seen.add(pair)
                left.append(pair)
        for chars_a, to_a in one.steps[a]:
            for chars_b, to_b in other.steps[b]:
                pair = (to_a, to_b)
                if pair not in seen and chars_a.meets(chars_b):
                    seen.add(pair)
                    left.append(pair)
    return False


_GONE = -1
"""The place in a folder's name of a path that has left it."""


def _is_within(automaton: _Automaton, folders: tuple[str, ...]) -> bool:
    start = (0, (0,) * len(folders))
    seen = {start}
    left = [start]
    while left:
        state, places = left.pop()
        live = {folder: place for folder, place in zip(folders, places, strict=True) if place != _GONE}
        if state == automaton.end and not any(place == len(folder) for folder, place in live.items()):
            return False
        if not live or len(seen) > _STEPS:
            return False
        after = [(to, places) for to in automaton.free[state]]
        for chars, to in automaton.steps[state]:
            awaited = {f"{folder}/"[place] for folder, place in live.items()}
            if chars.others or chars.these - awaited:
                return False
            for char in chars.these:
                if char == "/" and any(place == len(folder) for folder, place in live.items()):
                    continue  # inside one of them, whatever follows
                after.append((to, tuple(_next(f, p, char) for f, p in zip(folders, places, strict=True))))
        left += [each for each in after if each not in seen]
        seen.update(after)
    return True


def _next(folder: str, place: int, char: str) -> int:
    awaited = place != _GONE and place < len(folder) and folder[place] == char
    return place + 1 if awaited else _GONE
