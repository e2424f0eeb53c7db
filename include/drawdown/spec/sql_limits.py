"""`sql_limits:` of project.yaml: how large one result of an SQL function may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from drawdown.values.model import SpecModel

_UNITS = {"k": 1 << 10, "m": 1 << 20}


class SqlLimits(SpecModel):
    """``text``: of one text or binary value; ``elements``: of an array, or rows of a generator;
    ``partitions``: what a hint or range() may ask for."""

    text: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}[km]$")] = "16m"
    elements: Annotated[int, Field(ge=1, le=100_000_000)] = 1_000_000
    partitions: Annotated[int, Field(ge=1, le=100_000)] = 1000

    @property
    def text_bytes(self) -> int:
        return int(self.text[:-1]) * _UNITS[self.text[-1]]
