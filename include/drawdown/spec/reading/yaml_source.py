"""Reads a spec file as YAML with the line of every key, and refuses YAML features beyond plain data.

It uses the parser's events, so a document cannot choose what is constructed: no tags, no anchors and aliases
(bombs), no merge keys, one document, bounded depth and size. Composed nodes hide an anchor without alias and
have no depth limit; checking both in a separate pass over the events would make reading take 1.8 times as
long. Unquoted scalars follow the core schema of YAML 1.2: only true, false, null, ~ and decimal numbers are
not text; ``NO`` and ``12:30`` are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from drawdown.errors import SpecError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 20

KeyPath = tuple[str | int, ...]

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip


@dataclass(frozen=True)
class Document:
    """The data of one file. ``lines`` gives the line (from 1) of each key path; ``shown`` names the file."""

    shown: str
    data: Any
    lines: dict[KeyPath, int]

    def line(self, path: KeyPath) -> int:
        """Return the line of a key path, or of its nearest existing parent."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def where(self, path: KeyPath) -> str:
        """Return ``file:line`` of a key path."""
        return f"{self.shown}:{self.line(path)}"


def read_text(path: str | Path, shown: str) -> str:
    """Read a text file of at most 256 KiB in UTF-8. Raises SpecError; ``shown`` is how errors name the
    file."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  (read 6,000 times in a large project)
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError(
            "spec.file-unreadable",
            f"the file cannot be read: {error.strerror or type(error).__name__}",
            where=shown,
            do="create it, or make it readable",
        ) from None
    if len(content) > MAX_BYTES:
        raise SpecError(
            "spec.file-too-large",
            f"the file is larger than {MAX_BYTES // 1024} KiB",
            where=shown,
            do="keep data out of spec files",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise SpecError(
            "spec.not-utf8", "the file is not UTF-8 text", where=f"{shown}:{line}", do="save it as UTF-8"
        ) from None


def parse(text: str, shown: str) -> Document:
    """Return the single mapping in a spec file. Raises SpecError with file:line for everything else."""
    reader = _YamlReader(text, shown)
    try:
        data = reader.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise reader.error(
            "spec.yaml",
            f"not YAML: {error.problem or error.context}",
            mark.line if mark else 0,
            "check indentation, quotes and the space after colons",
        ) from None
    except yaml.YAMLError as error:
        raise reader.error(
            "spec.yaml", f"not YAML: {str(error).splitlines()[0][:120]}", 0, "save it as plain text"
        ) from None
    if not isinstance(data, dict):
        raise reader.error(
            "spec.yaml",
            "the file must contain keys and values",
            0,
            "see examples/, or `drawdown init NAME`",
        )
    return Document(shown, data, reader.lines)


class _YamlReader:
    """Builds dicts, lists and scalars from the events of one text."""

    def __init__(self, text: str, shown: str) -> None:
        self._text = text
        self._shown = shown
        self._next: Callable[[], Any] = lambda: None
        self.lines: dict[KeyPath, int] = {(): 1}

    def error(self, id: str, what: str, line: int, do: str) -> SpecError:
        """``line`` counts from 0, as YAML's marks do."""
        return SpecError(id, what, where=f"{self._shown}:{line + 1}", do=do)

    def document(self) -> Any:
        parser = _Parser(self._text)
        try:
            self._next = parser.get_event
            self._next()  # stream start
            if isinstance(self._next(), yaml.StreamEndEvent):
                return None
            data = self._node(self._next(), (), 0)
            self._next()  # document end
            more = self._next()
            if not isinstance(more, yaml.StreamEndEvent):
                raise self.error(
                    "spec.yaml",
                    "a second document starts here",
                    more.start_mark.line,
                    "write one document per file",
                )
            return data
        finally:
            parser.dispose()

    def _node(self, event: Any, path: KeyPath, depth: int) -> Any:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise self.error(
                "spec.yaml-anchor",
                "anchors (&) and aliases (*) are not allowed",
                event.start_mark.line,
                "write the value in full",
            )
        if event.tag is not None:
            raise self.error(
                "spec.yaml-tag",
                "YAML tags (!) are not allowed",
                event.start_mark.line,
                "remove the tag, quote text",
            )
        if isinstance(event, yaml.ScalarEvent):
            return scalar(event.value) if event.implicit[0] else event.value
        if depth == MAX_DEPTH:
            raise self.error(
                "spec.yaml",
                f"nested deeper than {MAX_DEPTH}",
                event.start_mark.line,
                "flatten it: no spec needs this depth",
            )
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth + 1)
        return self._sequence(path, depth + 1)

    def _mapping(self, path: KeyPath, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            line = event.start_mark.line
            if not isinstance(event, yaml.ScalarEvent) or event.anchor is not None or event.tag is not None:
                raise self.error("spec.yaml", "a key must be plain text", line, "write `key: value`")
            key = event.value
            here = (*path, key)
            if key in data:
                raise self.error(
                    "spec.duplicate-key",
                    f"the key {key[:60]!r} stands twice, first in line {self.lines[here]}",
                    line,
                    "remove one of them",
                )
            self.lines[here] = line + 1
            data[key] = self._node(self._next(), here, depth)
        return data

    def _sequence(self, path: KeyPath, depth: int) -> list[Any]:
        data: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            here = (*path, len(data))
            self.lines[here] = event.start_mark.line + 1
            data.append(self._node(event, here, depth))
        return data


def scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text
