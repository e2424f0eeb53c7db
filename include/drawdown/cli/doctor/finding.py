"""The result of one check of `drawdown doctor`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """`do` is the command that fixes it, empty when all is well."""

    about: str
    level: Level
    what: str
    do: str = ""

    def as_dict(self) -> dict[str, str]:
        return asdict(self)
