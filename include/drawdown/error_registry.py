"""The meaning and remedy of every id of errors, of a plan's verdicts and of a run's notices.

Each room, and each kind's folder, describes its own ids in an ``errors.toml``; they are read together here,
without importing any room.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from drawdown import errors
from drawdown.errors import DrawdownError
from drawdown.plan_verdicts import Level

LIBRARY = Path(__file__).parent
FILE = "errors.toml"
Report = Level | Literal["notice"]
"""How a run or a plan reports other findings: as a verdict of a level, or a notice in the run record."""


@dataclass(frozen=True)
class ErrorEntry:
    """The description of one id, whatever raises it.

    Attributes:
        id: ``area.what``.
        raised: the classes it is raised as, which decide the exit code; empty if it is only reported.
        reported: levels of verdicts, and ``notice``.
        meaning: when it occurs, and what it protects.
        remedy: what to do in general; an error's own ``do`` is more exact.
        room: the folder that describes it, below the library's; "" for the library's own.
    """

    id: str
    raised: tuple[type[DrawdownError], ...]
    reported: tuple[Report, ...]
    meaning: str
    remedy: str
    room: str

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]

    @property
    def exit_codes(self) -> tuple[int, ...]:
        return tuple(sorted({kind.exit_code for kind in self.raised}))

    @property
    def transient(self) -> bool:
        """Whether a retry can help."""
        return any(kind.transient for kind in self.raised)

    def as_dict(self) -> dict[str, Any]:
        """Return the entry as ``--json`` shows it."""
        return {
            "id": self.id,
            "raised": [kind.__name__ for kind in self.raised],
            "reported": list(self.reported),
            "exit_codes": list(self.exit_codes),
            "transient": self.transient,
            "meaning": self.meaning,
            "remedy": self.remedy,
        }


@cache
def error_entries() -> Mapping[str, ErrorEntry]:
    """Return all entries by id, in alphabetical order. Raises ValueError when two rooms describe one id."""
    found: dict[str, ErrorEntry] = {}
    for file in sorted(LIBRARY.rglob(FILE)):
        for entry in _read(file):
            if entry.id in found:
                raise ValueError(f"{entry.id} is described in {found[entry.id].room!r} and in {entry.room!r}")
            found[entry.id] = entry
    return dict(sorted(found.items()))


def _read(file: Path) -> Iterator[ErrorEntry]:
    room = file.parent.relative_to(LIBRARY).as_posix()
    for id, given in tomllib.loads(file.read_text(encoding="utf-8")).items():
        yield ErrorEntry(
            id,
            raised=tuple(getattr(errors, name) for name in _names(given.get("raised"))),
            reported=tuple(_names(given.get("reported"))),
            meaning=_sentences(given["meaning"]),
            remedy=_sentences(given["remedy"]),
            room="" if room == "." else room,
        )


def _names(given: str | list[str] | None) -> Any:
    return [given] if isinstance(given, str) else given or []


def _sentences(text: str) -> str:
    return " ".join(text.split())
