"""`history:` of quality.yaml: comparisons of a slice with earlier published slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from drawdown.values.duration import PositiveDuration
from drawdown.values.model import Column, Line, SpecModel, problem

Measure = Literal["volume", "freshness", "null_rate", "mean", "distinct_count"]


class HistoryExpectation(SpecModel):
    """One measure of the slice against the median of the last ``runs`` slices, or against the clock.

    ``ratio``: within low * median to high * median. ``difference``: within median - d to median + d.
    ``max_age``: how old the greatest time of ``column`` may be when the slice is judged.
    """

    measure: Measure
    column: Column | None = None
    ratio: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2)] | None = None
    difference: Annotated[float, Field(gt=0)] | None = None
    max_age: PositiveDuration | None = None
    runs: Annotated[int, Field(ge=2, le=1_000)] = 10
    severity: Literal["fail", "warn"] = "fail"
    name: Line | None = None

    @property
    def key(self) -> str:
        """Return the key of the measure in a verdict; two expectations can share it."""
        return f"{self.measure}({self.column})" if self.column else self.measure

    @property
    def id(self) -> str:
        """Return the name, else the measure; results are shown under it."""
        return self.name or self.key

    @model_validator(mode="after")
    def _keys_fit_the_measure(self) -> HistoryExpectation:
        needs_column = self.measure != "volume"
        if needs_column and self.column is None:
            raise problem("missing-key", f"{self.measure} needs a column", "measure", do="add `column:`")
        if not needs_column and self.column is not None:
            raise problem("no-effect", "volume counts rows", "column", do="remove the key")
        bounds = {"freshness": ("max_age",), "null_rate": ("difference",)}.get(
            self.measure, ("ratio", "difference")
        )
        given = [key for key in ("ratio", "difference", "max_age") if getattr(self, key) is not None]
        for key in given:
            if key not in bounds:
                do = f"write `{bounds[0]}:` instead"
                raise problem("no-effect", f"{self.measure} is bounded by {' or '.join(bounds)}", key, do=do)
        if len(given) != 1:
            says = f"{self.measure} needs {'one of ' if len(bounds) > 1 else ''}{' and '.join(bounds)}"
            kind = "contradiction" if given else "missing-key"
            if kind == "contradiction":
                raise problem("contradiction", says, given[-1], do="remove one of them")
            raise problem("missing-key", says, "measure", do=f"add `{bounds[0]}:`")
        if self.ratio and self.ratio[0] > self.ratio[1]:
            raise problem("wrong-value", "the low ratio comes first", "ratio", do="write [low, high]")
        if self.measure == "freshness" and "runs" in self.model_fields_set:
            raise problem("no-effect", "freshness is judged by the clock", "runs", do="remove the key")
        return self


def values_needed(history: Sequence[HistoryExpectation]) -> dict[str, int]:
    """Return, by measure, how many of its last values the expectations need."""
    return {each.key: max(other.runs for other in history if other.key == each.key) for each in history}
